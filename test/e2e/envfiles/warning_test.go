package envfiles

import (
	"context"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

// noWriter is what the warning says after the path of the reference.
const noWriter = `: no init container mounts volume "config", so nothing can have written the file; mount it in an init container, or set optional`

var _ = describe("the API server warns of a file that nothing can have written", func(f *framework.Framework) {
	ginkgo.DescribeTable("in a pod whose volume", func(ctx context.Context, pod *v1.Pod, want ...string) {
		client, _, heard := listening(f)
		_, err := client.CoreV1().Pods(f.Namespace.Name).Create(ctx, unscheduled(pod), metav1.CreateOptions{})
		framework.ExpectNoError(err)

		gomega.Expect(heard.all()).To(gomega.ConsistOf(want))
	},
		ginkgo.Entry("no init container mounts",
			newPod("warned", nil, pods.Dumps(consumer, v1.EnvVar{Name: "LITERAL", Value: "1"}, from("A", "config.env", "A"))),
			"spec.containers[0].env[1].valueFrom.fileKeyRef"+noWriter),
		ginkgo.Entry("no init container mounts, though one consumes it, too",
			newPod("warned", []v1.Container{pods.Dumps("init", from("A", "config.env", "A"))}, pods.Dumps(consumer, from("A", "config.env", "A"))),
			`spec.initContainers[0].env[0].valueFrom.fileKeyRef: no earlier init container mounts volume "config", so nothing can have written the file; mount it in an earlier init container, or set optional`,
			"spec.containers[0].env[0].valueFrom.fileKeyRef"+noWriter),
		ginkgo.Entry("no init container mounts, but not where the variable is optional",
			newPod("silent", nil, pods.Dumps(consumer, optional(from("A", "config.env", "A"))))),
		ginkgo.Entry("is in huge pages",
			hugePages(newPod("warned", mountsOnly(), pods.Dumps(consumer, from("A", "config.env", "A")))),
			`spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: volume "config" is in huge pages, which programs cannot write to as to a file; use another medium`),
		ginkgo.Entry("an init container mounts, but the key cannot be in a file",
			newPod("warned", mountsOnly(), pods.Dumps(consumer, from("A", "config.env", "#A"))),
			`spec.containers[0].env[0].valueFrom.fileKeyRef.key: "#A" starts with # or has white space at an end, which no name in an env file has`),
		ginkgo.Entry("an init container mounts: no warning",
			newPod("silent", mountsOnly(), pods.Dumps(consumer, from("A", "config.env", "A")))),
	)

	forEachWorkload("in the template", func(ctx context.Context, w workload) {
		_, client, heard := listening(f)
		pod := unscheduled(newPod("", nil, pods.Dumps(consumer, v1.EnvVar{Name: "LITERAL", Value: "1"}, from("A", "config.env", "A"))))
		_, err := w.Client(client, f.Namespace.Name).Create(ctx, w.Of("warned", pod), metav1.CreateOptions{})
		framework.ExpectNoError(err)

		gomega.Expect(heard.all()).To(gomega.ConsistOf(w.At("spec.containers[0].env[1].valueFrom.fileKeyRef") + noWriter))
	})
})

// hugePages puts the pod's first volume into huge pages.
func hugePages(pod *v1.Pod) *v1.Pod {
	pod.Spec.Volumes[0].EmptyDir.Medium = v1.StorageMediumHugePages
	limits := v1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi"), v1.ResourceMemory: resource.MustParse("64Mi")}
	pod.Spec.InitContainers[0].Resources.Limits = limits
	return pod
}

// listening returns clients, and the warnings that they get.
func listening(f *framework.Framework) (kubernetes.Interface, dynamic.Interface, *warnings) {
	ginkgo.GinkgoHelper()
	config := f.ClientConfig()
	heard := &warnings{}
	config.WarningHandler = heard
	client, err := kubernetes.NewForConfig(config)
	framework.ExpectNoError(err)
	unstructured, err := dynamic.NewForConfig(config)
	framework.ExpectNoError(err)
	return client, unstructured, heard
}

// warnings collects the Warning headers of a client's answers.
type warnings struct {
	mutex sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if code == 299 { // what an API server has to say, see RFC 7234
		w.texts = append(w.texts, text)
	}
}

func (w *warnings) all() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.texts
}
