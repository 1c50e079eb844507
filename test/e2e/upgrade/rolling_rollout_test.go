package upgrade

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
)

// rollout changes a Deployment while components meet the server with the gates on, then
// the one with them off, and then both.
func rollout(ctx context.Context, f *framework.Framework, servers *nodes.APIServerPair) {
	w := rollingWorkload{f, servers}
	servers.Balance(ctx, nodes.ToFirst)
	before := w.writes(ctx)
	w.deploy(ctx)
	first := w.awaitComplete(ctx)

	servers.Balance(ctx, nodes.ToSecond)
	ginkgo.By("asking for one more pod, and for others")
	w.scale(ctx, len(first)+1)
	w.awaitEvent(ctx, "FailedCreate", "spec.containers[0].env")
	w.restart(ctx)
	w.awaitEvent(ctx, "ReplicaSetCreateError", "spec.template.spec.containers[0].env")
	now, err := w.running(ctx)
	framework.ExpectNoError(err)
	gomega.Expect(uids(now)).To(gomega.ConsistOf(uids(first)), "what ran goes on while new pods are refused")
	w.runStored(ctx)
	w.expectIntact(ctx)

	servers.Balance(ctx, nodes.ToBoth)
	w.nudge(ctx)
	gomega.Expect(uids(w.awaitComplete(ctx))).NotTo(gomega.ContainElement(gomega.BeElementOf(uids(first))), "pods of before the roll-out")
	w.restart(ctx)
	w.awaitComplete(ctx)
	w.expectIntact(ctx)
	w.expectWritten(before, w.writes(ctx))
}

func uids(list []v1.Pod) (uids []types.UID) {
	for _, pod := range list {
		uids = append(uids, pod.UID)
	}
	return uids
}

// rollingWorkload is a Deployment that takes variables of all features that have a probe, on a control
// plane that rolls.
type rollingWorkload struct {
	f       *framework.Framework
	servers *nodes.APIServerPair
}

func (w rollingWorkload) deploy(ctx context.Context) {
	ginkgo.GinkgoHelper()
	template := rollingPod(serves(regular, rollingEnv()...))
	_, err := w.servers.On.Client.AppsV1().Deployments(w.f.Namespace.Name).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "rolling"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: template,
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromString("100%"))}},
		},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
}

func (w rollingWorkload) scale(ctx context.Context, replicas int) {
	ginkgo.GinkgoHelper()
	_, err := w.servers.Off.Client.AppsV1().Deployments(w.f.Namespace.Name).Patch(ctx, "rolling", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{}, "scale")
	framework.ExpectNoError(err)
}

// awaitEvent waits for an event that says that the server with the gates off refuses
// variables, at path, of all features whose gates can be off.
func (w rollingWorkload) awaitEvent(ctx context.Context, reason, path string) {
	ginkgo.GinkgoHelper()
	list := framework.ListObjects(w.servers.Off.Client.CoreV1().Events(w.f.Namespace.Name).List, metav1.ListOptions{FieldSelector: "reason=" + reason})
	refused := gomega.Not(gomega.BeEmpty())
	at := 0 // in rollingEnv
	for _, feature := range guarded() {
		if !feature.Spec.LockToDefault {
			refused = gomega.And(refused, gomega.ContainSubstring(fmt.Sprintf("%s[%d]", path, at)))
		}
		at += len(feature.Probe.Env)
	}
	gomega.Eventually(ctx, list).WithTimeout(patience).WithPolling(poll).Should(gomega.HaveField("Items", gomega.ContainElement(gomega.HaveField("Message", refused))))
}

// reconnect is how long a controller may meet the server with the gates off before it
// reconnects. Watches come back after that with a back-off of their own, so not often.
const reconnect = 10 * time.Second

// awaitComplete waits until the Deployment has rolled out, and returns its pods.
func (w rollingWorkload) awaitComplete(ctx context.Context) (running []v1.Pod) {
	ginkgo.GinkgoHelper()
	start := time.Now()
	connected := start
	gomega.Eventually(ctx, func(ctx context.Context) error {
		d, err := w.servers.On.Client.AppsV1().Deployments(w.f.Namespace.Name).Get(ctx, "rolling", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if running, err = w.running(ctx); err != nil {
			return err
		}
		s, want := d.Status, *d.Spec.Replicas
		if s.ObservedGeneration == d.Generation && s.Replicas == want && s.UpdatedReplicas == want && s.AvailableReplicas == want && len(running) == int(want) {
			return nil
		}
		if isRefusedPods(d) && time.Since(connected) > reconnect {
			connected = time.Now()
			w.servers.Balance(ctx, nodes.ToBoth)
			w.nudge(ctx)
		}
		return fmt.Errorf("the Deployment is not complete, and has %d pods that run: %s", len(running), framework.PrettyPrintJSON(s))
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
	ginkgo.By(fmt.Sprintf("complete after %s", time.Since(start).Round(time.Second)))
	for _, pod := range running {
		w.expectEnv(ctx, pod.Name)
	}
	return running
}

// isRefusedPods reports whether controllers say that the API server refuses their pods.
func isRefusedPods(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentReplicaFailure || c.Reason == "ReplicaSetCreateError"
	})
}

// runStored has a pod run that the server with the gates on has taken, whoever hands it on.
func (w rollingWorkload) runStored(ctx context.Context) {
	ginkgo.GinkgoHelper()
	template := rollingPod(pods.Dumps(regular, rollingEnv()...))
	template.Spec.RestartPolicy = v1.RestartPolicyNever
	_, err := w.servers.On.Client.CoreV1().Pods(w.f.Namespace.Name).Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "stored"}, Spec: template.Spec,
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	pods.Await(ctx, w.f, "stored", "its end", func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodSucceeded })
	w.expectEnv(ctx, "stored")
}

// expectEnv checks what a container got.
func (w rollingWorkload) expectEnv(ctx context.Context, pod string) {
	ginkgo.GinkgoHelper()
	env := pods.Env(ctx, w.f, pod, regular)
	for _, name := range rollingNames() {
		gomega.Expect(env).To(gomega.HaveKeyWithValue(name, featuregates.Value), "pod %s", pod)
	}
}

// nudge makes the controllers of the Deployment and, since annotations are handed on, of its
// ReplicaSet try again now, as they do after every change, rather than at the end of their
// back-off. It doubles each time, and after 15 times the former gives up until the next change.
func (w rollingWorkload) nudge(ctx context.Context) {
	ginkgo.GinkgoHelper()
	w.annotate(ctx, `{"metadata":{"annotations":{"podenv.dev/nudged":%q}}}`)
}

// restart has the Deployment roll out, as `kubectl rollout restart` does.
func (w rollingWorkload) restart(ctx context.Context) {
	ginkgo.GinkgoHelper()
	w.annotate(ctx, `{"spec":{"template":{"metadata":{"annotations":{"podenv.dev/restarted":%q}}}}}`)
}

// annotate sends a patch with the time to the server with the gates off.
func (w rollingWorkload) annotate(ctx context.Context, format string) {
	ginkgo.GinkgoHelper()
	_, err := w.servers.Off.Client.AppsV1().Deployments(w.f.Namespace.Name).Patch(ctx, "rolling", types.MergePatchType,
		fmt.Appendf(nil, format, time.Now().Format(time.RFC3339Nano)), metav1.PatchOptions{})
	framework.ExpectNoError(err)
}

// running are the Deployment's pods whose container runs and that are not about to end.
func (w rollingWorkload) running(ctx context.Context) ([]v1.Pod, error) {
	list, err := w.servers.On.Client.CoreV1().Pods(w.f.Namespace.Name).List(ctx, metav1.ListOptions{LabelSelector: "app=rolling"})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p v1.Pod) bool {
		return p.DeletionTimestamp != nil || pods.Status(&p, regular).State.Running == nil
	}), nil
}

// expectIntact checks that both servers show all variables of all objects.
func (w rollingWorkload) expectIntact(ctx context.Context) {
	ginkgo.GinkgoHelper()
	for _, s := range w.servers.Both() {
		deployments, err := s.Client.AppsV1().Deployments(w.f.Namespace.Name).List(ctx, metav1.ListOptions{})
		framework.ExpectNoError(err)
		replicaSets, err := s.Client.AppsV1().ReplicaSets(w.f.Namespace.Name).List(ctx, metav1.ListOptions{})
		framework.ExpectNoError(err)
		list, err := s.Client.CoreV1().Pods(w.f.Namespace.Name).List(ctx, metav1.ListOptions{})
		framework.ExpectNoError(err)
		specs := map[string]v1.PodSpec{}
		for _, d := range deployments.Items {
			specs["Deployment/"+d.Name] = d.Spec.Template.Spec
		}
		for _, rs := range replicaSets.Items {
			specs["ReplicaSet/"+rs.Name] = rs.Spec.Template.Spec
		}
		for _, pod := range list.Items {
			specs["Pod/"+pod.Name] = pod.Spec
		}
		gomega.Expect(len(specs)).To(gomega.BeNumerically(">", 2), "objects that %s shows", s.Name)
		for name, spec := range specs {
			gomega.Expect(spec.Containers[0].Env).To(gomega.Equal(rollingEnv()), "%s: %s", s.Name, name)
		}
	}
}

// writer is what only one component writes, in the words of apiserver_request_total.
type writer struct {
	component string
	labels    map[string]string
}

var rollingWriters = []writer{
	{"the controller manager", map[string]string{"resource": "deployments", "subresource": "status", "verb": "PUT"}},
	{"the scheduler", map[string]string{"resource": "pods", "subresource": "binding", "verb": "POST"}},
	{"kubelets", map[string]string{"resource": "pods", "subresource": "status", "verb": "PATCH"}},
}

// writes counts, by server and component, what each has got.
func (w rollingWorkload) writes(ctx context.Context) map[string]float64 {
	ginkgo.GinkgoHelper()
	counts := map[string]float64{}
	for _, s := range w.servers.Both() {
		for _, c := range rollingWriters {
			n, err := s.Requests(ctx, c.labels)
			framework.ExpectNoError(err)
			counts[c.component+" to "+s.Name] = n
		}
	}
	return counts
}

// expectWritten checks that every component has written to both servers since before.
func (w rollingWorkload) expectWritten(before, now map[string]float64) {
	ginkgo.GinkgoHelper()
	for pair, n := range now {
		ginkgo.GinkgoWriter.Printf("%s: %v requests\n", pair, n-before[pair])
		gomega.Expect(n).To(gomega.BeNumerically(">", before[pair]), "requests of %s", pair)
	}
}
