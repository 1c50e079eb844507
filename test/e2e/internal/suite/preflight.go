package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

// preflightTimeout limits the wait for a schedulable node, and for a node to run one pod of the
// test images. An earlier suite may have restarted an API server or a kubelet.
const preflightTimeout = 3 * time.Minute

// Before the specs, the cluster must have the required gates, and every schedulable node runs
// one container of each test image. Otherwise a wrong component or a missing image would fail
// each spec, without an error that says what to do.
var _ = ginkgo.SynchronizedBeforeSuite(func(ctx context.Context) {
	client, err := framework.LoadClientset()
	framework.ExpectNoError(err)
	if err := preflight(ctx, client); err != nil {
		framework.Failf("the cluster cannot run the suite: %v", err)
	}
}, func() {})

func preflight(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := awaitNodes(ctx, client)
	if err != nil {
		return err
	}
	// With --focus, the user may want specs that run with a gate off.
	if config, _ := ginkgo.GinkgoConfiguration(); len(config.FocusStrings) == 0 {
		if err := components.CheckRequiredGates(ctx, client); err != nil {
			return err
		}
	}
	namespace, err := framework.CreateTestingNS(ctx, "podenv-preflight", client, map[string]string{
		admissionapi.EnforceLevelLabel: string(admissionapi.LevelBaseline),
	})
	if err != nil {
		return fmt.Errorf("create a namespace: %w", err)
	}
	defer func() {
		// Also after Ctrl-C, when ctx has ended.
		if err := client.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), namespace.Name, metav1.DeleteOptions{}); err != nil {
			framework.Logf("delete namespace %s: %v", namespace.Name, err)
		}
	}()

	var probes []*v1.Pod
	for _, node := range nodes {
		probe, err := client.CoreV1().Pods(namespace.Name).Create(ctx, newProbe(node.Name), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create a pod on node %s: %w", node.Name, err)
		}
		probes = append(probes, probe)
	}
	for _, probe := range probes {
		if err := awaitProbe(ctx, client, probe); err != nil {
			reportNamespace(ctx, client, namespace.Name)
			return err
		}
	}
	return nil
}

// awaitNodes returns the nodes that take pods, once there are any.
func awaitNodes(ctx context.Context, client kubernetes.Interface) (ready []v1.Node, err error) {
	total := -1 // not listed yet
	err = wait.PollUntilContextTimeout(ctx, time.Second, preflightTimeout, true, func(ctx context.Context) (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list the nodes: %w", err)
		}
		total = len(nodes.Items)
		ready = slices.DeleteFunc(nodes.Items, func(node v1.Node) bool { return !components.TakesPods(node) })
		return len(ready) > 0, nil
	})
	// Not after Ctrl-C, and not if listing nodes never succeeded.
	if wait.Interrupted(err) && ctx.Err() == nil && total >= 0 {
		err = fmt.Errorf("none of the cluster's %d nodes takes pods: kubectl get nodes shows why", total)
	}
	return ready, err
}

func newProbe(node string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "preflight-"},
		Spec:       v1.PodSpec{NodeName: node, RestartPolicy: v1.RestartPolicyNever},
	}
	for i, image := range images.All {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprintf("image-%d", i), Image: image, ImagePullPolicy: v1.PullNever})
	}
	pods.Quick(&pod.Spec)
	return pod
}

func awaitProbe(ctx context.Context, client kubernetes.Interface, probe *v1.Pod) error {
	var last *v1.Pod
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, preflightTimeout, true, func(ctx context.Context) (bool, error) {
		pod, err := client.CoreV1().Pods(probe.Namespace).Get(ctx, probe.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = pod
		return pod.Status.Phase == v1.PodSucceeded, checkProbe(pod)
	})
	if wait.Interrupted(err) && last != nil {
		return fmt.Errorf("node %s did not run a pod within %s, which is %s: kubectl describe node %s shows why",
			probe.Spec.NodeName, preflightTimeout, last.Status.Phase, probe.Spec.NodeName)
	}
	return err
}

// checkProbe returns an error for a probe that cannot succeed any more.
func checkProbe(probe *v1.Pod) error {
	var missing []string
	for _, status := range probe.Status.ContainerStatuses {
		if status.State.Waiting != nil && status.State.Waiting.Reason == "ErrImageNeverPull" {
			missing = append(missing, status.Image)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("node %s lacks %s: %s", probe.Spec.NodeName, strings.Join(missing, " and "), pods.HowToLoad)
	}
	if probe.Status.Phase == v1.PodFailed {
		return fmt.Errorf("node %s cannot run the test images: %s", probe.Spec.NodeName, framework.PrettyPrintJSON(probe.Status))
	}
	return nil
}

// PolicyVersion returns the newest version of ValidatingAdmissionPolicy that the API server serves. It
// skips the spec if there is none, as in v1.29 by default.
func PolicyVersion(f *framework.Framework) schema.GroupVersion {
	ginkgo.GinkgoHelper()
	for _, version := range []string{"v1", "v1beta1"} {
		in := schema.GroupVersion{Group: admissionv1.GroupName, Version: version}
		served, err := discovery.IsResourceEnabled(f.ClientSet.Discovery(), in.WithResource("validatingadmissionpolicies"))
		framework.ExpectNoError(err)
		if served {
			return in
		}
	}
	ginkgo.Skip("the API server does not serve ValidatingAdmissionPolicy")
	return schema.GroupVersion{}
}

// CreatePolicy creates a policy and its binding in the version that PolicyVersion returned, and deletes them
// at the end of the spec. It returns the client for policies.
func CreatePolicy(ctx context.Context, f *framework.Framework, version schema.GroupVersion, policy *admissionv1.ValidatingAdmissionPolicy, binding *admissionv1.ValidatingAdmissionPolicyBinding) dynamic.ResourceInterface {
	ginkgo.GinkgoHelper()
	policies := f.DynamicClient.Resource(version.WithResource("validatingadmissionpolicies"))
	createAs(ctx, policies, version.WithKind("ValidatingAdmissionPolicy"), policy)
	createAs(ctx, f.DynamicClient.Resource(version.WithResource("validatingadmissionpolicybindings")), version.WithKind("ValidatingAdmissionPolicyBinding"), binding)
	return policies
}

func createAs(ctx context.Context, client dynamic.ResourceInterface, kind schema.GroupVersionKind, object metav1.Object) {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	framework.ExpectNoError(err)
	in := &unstructured.Unstructured{Object: content}
	in.SetGroupVersionKind(kind)
	_, err = client.Create(ctx, in, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	ginkgo.DeferCleanup(framework.IgnoreNotFound(client.Delete), object.GetName(), metav1.DeleteOptions{})
}
