package envfiles

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/kubernetes/test/e2e/framework"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

// The kubelet's metrics that these specs are about: the branch's own, and those by
// which KEP-3721 would have an operator notice that a rollout goes wrong.
const (
	envFileReads         = "kubelet_env_file_read_duration_seconds_count"
	envFileErrors        = "kubelet_env_file_errors_total"
	containersNotStarted = "kubelet_started_containers_errors_total"
	podSandboxesNotMade  = "kubelet_started_pods_errors_total"
	requestsToTheAPI     = "apiserver_request_total"
)

// They run alone: beside other specs, it would be those that move the counters.
var _ = describe("metrics", func(f *framework.Framework) {
	f.It("of the kubelet count each reading of an env file, and each start that failed for one by its reason", framework.WithSerial(), func(ctx context.Context) {
		node := quietNode(ctx, f)
		before := scrape(ctx, f, components.KubeletMetrics(node))
		pod := newPod("measured",
			[]v1.Container{sidecar(`head -c 65537 /dev/zero | tr '\0' '#' > /data/config.env`)},
			pods.Dumps(consumer, from("A", "config.env", "KEY"), from("B", "config.env", "KEY")))
		pod.Spec.NodeName = node
		pods.Create(ctx, f, pod)
		pods.AwaitConfigError(ctx, f, pod.Name, consumer)

		failed := scrape(ctx, f, components.KubeletMetrics(node))
		starts := failed.Sum(envFileErrors, map[string]string{"reason": "limit_exceeded"}) -
			before.Sum(envFileErrors, map[string]string{"reason": "limit_exceeded"})
		gomega.Expect(starts).To(gomega.BeNumerically(">=", 1), "starts that failed because the file is larger than 64 KiB")
		gomega.Expect(failed.Sum(envFileErrors, nil)-before.Sum(envFileErrors, nil)).To(gomega.Equal(starts), "none failed for another reason")
		gomega.Expect(failed.Sum(envFileReads, nil)-before.Sum(envFileReads, nil)).To(gomega.Equal(starts),
			"the file is read once per start, though two variables come from it")
		code := map[string]string{"code": pods.ConfigError, "container_type": "container"}
		gomega.Expect(failed.Sum(containersNotStarted, code) - before.Sum(containersNotStarted, code)).To(gomega.Equal(starts))
		gomega.Expect(failed.Sum(podSandboxesNotMade, nil)).To(gomega.Equal(before.Sum(podSandboxesNotMade, nil)),
			"it counts pods whose sandbox cannot be made, which no env file brings about")

		replace(ctx, f, pod.Name, "config.env", "KEY=right")
		awaitValue(ctx, f, pod.Name, "A", "right")
		started := scrape(ctx, f, components.KubeletMetrics(node))
		gomega.Expect(started.Sum(envFileReads, nil)).To(gomega.BeNumerically(">", failed.Sum(envFileReads, nil)))
	})

	f.It("of the kubelet count a pod with env files whose sandbox cannot be made", framework.WithSerial(), func(ctx context.Context) {
		node := quietNode(ctx, f)
		before := scrape(ctx, f, components.KubeletMetrics(node))
		class, err := f.ClientSet.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "envfiles-"}, Handler: "no-such-runtime",
		}, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		ginkgo.DeferCleanup(f.ClientSet.NodeV1().RuntimeClasses().Delete, class.Name, metav1.DeleteOptions{})
		pod := newPod("no-sandbox", writes("config.env", "KEY=value\n"), pods.Dumps(consumer, from("A", "config.env", "KEY")))
		pod.Spec.NodeName, pod.Spec.RuntimeClassName = node, ptr.To(class.Name)
		pods.Create(ctx, f, pod)

		gomega.Eventually(ctx, func(ctx context.Context) (float64, error) {
			now, err := components.Scrape(ctx, f.ClientSet, components.KubeletMetrics(node))
			return now.Sum(podSandboxesNotMade, nil), err
		}).WithTimeout(f.Timeouts.PodStartShort).Should(gomega.BeNumerically(">", before.Sum(podSandboxesNotMade, nil)))
	})

	// The KEP expects validation errors as code=400. An API server answers 400 to what it
	// cannot decode, and 422 to what it decodes and refuses.
	f.It("of the API server count a fileKeyRef that is refused as code 422, and one that cannot be decoded as code 400", framework.WithSerial(), func(ctx context.Context) {
		refused := func(code string) float64 {
			labels := map[string]string{"resource": "pods", "subresource": "", "verb": "POST", "code": code}
			return scrape(ctx, f, components.APIServerMetrics).Sum(requestsToTheAPI, labels)
		}
		invalid, malformed := refused("422"), refused("400")

		_, err := pods.TryCreate(ctx, f, unscheduled(newPod("invalid", nil, pods.Dumps(consumer, from("A", "../config.env", "KEY")))))
		expectInvalid(err, fileKeyRef+".path")
		err = f.ClientSet.CoreV1().RESTClient().Post().Namespace(f.Namespace.Name).Resource("pods").Body([]byte(`{
			"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "malformed"},
			"spec": {"containers": [{"name": "main", "image": "`+images.Envdump+`", "env": [
				{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "config", "path": 1, "key": "KEY"}}}
			]}]}}`)).SetHeader("Content-Type", "application/json").Do(ctx).Error()
		gomega.Expect(apierrors.IsBadRequest(err)).To(gomega.BeTrueBecause("want code 400, got %v", err))

		gomega.Expect(refused("422")).To(gomega.Equal(invalid + 1))
		gomega.Expect(refused("400")).To(gomega.Equal(malformed + 1))
	})
})

func scrape(ctx context.Context, f *framework.Framework, path string) components.Metrics {
	ginkgo.GinkgoHelper()
	metrics, err := components.Scrape(ctx, f.ClientSet, path)
	framework.ExpectNoError(err)
	return metrics
}

// quietNode returns a node whose kubelet has no pod of an earlier spec to start any more,
// and has come to rest. It starts no container of a pod that is being deleted.
func quietNode(ctx context.Context, f *framework.Framework) string {
	ginkgo.GinkgoHelper()
	node, err := e2enode.GetRandomReadySchedulableNode(ctx, f.ClientSet)
	framework.ExpectNoError(err)
	gomega.Eventually(ctx, func(ctx context.Context) error {
		list, err := f.ClientSet.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node.Name).String(),
		})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if !strings.HasPrefix(pod.Namespace, f.BaseName+"-") {
				continue
			}
			if pod.DeletionTimestamp == nil {
				return fmt.Errorf("pod %s of namespace %s is still there", pod.Name, pod.Namespace)
			}
			framework.Logf("pod %s of namespace %s has been ending since %s: %s", pod.Name, pod.Namespace, pod.DeletionTimestamp, pod.Status.Phase)
		}
		return nil
	}).WithTimeout(f.Timeouts.PodDelete).Should(gomega.Succeed())
	reads := func() float64 {
		now := scrape(ctx, f, components.KubeletMetrics(node.Name))
		return now.Sum(envFileReads, nil) + now.Sum(envFileErrors, nil) + now.Sum(containersNotStarted, nil)
	}
	last := -1.0
	gomega.Eventually(ctx, func(context.Context) bool {
		before := last
		last = reads()
		return last == before
	}).WithTimeout(f.Timeouts.PodStartShort).WithPolling(2 * time.Second).Should(gomega.BeTrueBecause("the kubelet of node %s still reads env files", node.Name))
	return node.Name
}
