package relaxed

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

// The KEP's sections on rollback and downgrade: what was stored while the gate was on.
// The spec changes the manifest of the API server on its node and puts it back.
var _ = describeIf(unlocked, "when the API server's gate goes off and on again", func(f *framework.Framework) {
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged // for a shell on the node

	f.It("what was stored goes on, and can be updated, but makes no new pods until it is on", f.WithSerial(), suite.Shows("KEP-4369", "update off relaxed", "rollback", "again"), func(ctx context.Context) {
		client := f.ClientSet.AppsV1().Deployments(f.Namespace.Name)
		special, strict := deploymentOf(named(story)), deploymentOf(named("OTHER"))
		special.Name, strict.Name = "special", "strict"
		pods.Quick(&special.Spec.Template.Spec)
		special.Spec.Template.Spec.Containers[0].Args = []string{"serve"}
		special.Spec.Replicas = ptr.To(int32(1))
		for _, d := range []*appsv1.Deployment{special, strict} {
			_, err := client.Create(ctx, d, metav1.CreateOptions{})
			framework.ExpectNoError(err)
		}
		first := awaitRunning(ctx, f, 1)[0]
		server := findAPIServer(ctx, f)

		ginkgo.By("turning the gate off")
		server.setGate(ctx, f, featuregates.GateOff)
		running, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get(ctx, first.Name, metav1.GetOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(pods.Status(running, consumer)).To(gomega.And(
			gomega.HaveField("State.Running", gomega.Not(gomega.BeNil())), gomega.HaveField("RestartCount", gomega.BeZero())))

		ginkgo.By("updating what was stored")
		framework.ExpectNoError(updatePod(ctx, f, first.Name, func(pod *v1.Pod) { pod.Labels["note"] = "updated" }))
		framework.ExpectNoError(updateDeployment(ctx, f, "special", func(d *appsv1.Deployment) { d.Labels = map[string]string{"note": "updated"} }))
		framework.ExpectNoError(updateDeployment(ctx, f, "special", func(d *appsv1.Deployment) {
			env := d.Spec.Template.Spec.Containers[0].Env
			env[len(env)-1] = literal("another special name")
			d.Spec.Paused = true // of the new template no pod is wanted
		}), "the old object does not pass the strict rule")
		expectInvalid(updateDeployment(ctx, f, "strict", func(d *appsv1.Deployment) {
			container := &d.Spec.Template.Spec.Containers[0]
			container.Env = append(container.Env, literal(story))
		}), "spec.template.spec.containers[0].env[2].name")
		for _, kind := range kinds {
			kind.expectInvalid(f, kind.dryRun(ctx, f.DynamicClient, f.Namespace.Name, named(story)), ".containers[0].env[1].name")
		}

		ginkgo.By("asking for a new pod")
		framework.ExpectNoError(f.ClientSet.CoreV1().Pods(f.Namespace.Name).Delete(ctx, first.Name, metav1.DeleteOptions{}))
		owner := metav1.GetControllerOf(running).Name
		gomega.Eventually(ctx, func(ctx context.Context) []v1.Event { return eventsOf(ctx, f, owner) }).
			WithTimeout(f.Timeouts.PodStartShort).Should(gomega.ContainElement(gomega.And(
			gomega.HaveField("Reason", "FailedCreate"), gomega.HaveField("Message", gomega.ContainSubstring("spec.containers[0].env[1].name")))))

		ginkgo.By("turning the gate on again")
		server.setGate(ctx, f, featuregates.GateOn)
		framework.ExpectNoError(updateDeployment(ctx, f, "special", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(2)) }))
		for _, pod := range awaitRunning(ctx, f, 2) {
			gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.HaveKeyWithValue(story, valueOf(story)))
		}
	})
})

// awaitRunning waits for n pods of Deployments whose container runs.
func awaitRunning(ctx context.Context, f *framework.Framework, n int) (running []v1.Pod) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) (int, error) {
		list, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector)})
		if err != nil {
			return 0, err
		}
		running = nil
		for _, pod := range list.Items {
			if pod.DeletionTimestamp == nil && pods.Status(&pod, consumer).State.Running != nil {
				running = append(running, pod)
			}
		}
		return len(running), nil
	}).WithTimeout(f.Timeouts.PodStart).Should(gomega.Equal(n), "pods of the Deployment that run")
	return running
}

func updatePod(ctx context.Context, f *framework.Framework, name string, change func(*v1.Pod)) error {
	client := f.ClientSet.CoreV1().Pods(f.Namespace.Name)
	pod, err := client.Get(ctx, name, metav1.GetOptions{})
	framework.ExpectNoError(err)
	change(pod)
	pod.ResourceVersion = "" // whatever the kubelet writes meanwhile
	_, err = client.Update(ctx, pod, metav1.UpdateOptions{})
	return err
}

func updateDeployment(ctx context.Context, f *framework.Framework, name string, change func(*appsv1.Deployment)) error {
	client := f.ClientSet.AppsV1().Deployments(f.Namespace.Name)
	deployment, err := client.Get(ctx, name, metav1.GetOptions{})
	framework.ExpectNoError(err)
	change(deployment)
	deployment.ResourceVersion = "" // whatever its controller writes meanwhile
	_, err = client.Update(ctx, deployment, metav1.UpdateOptions{})
	return err
}

// apiServer is the API server's static pod, on a node that kubeadm set up.
type apiServer struct{ shell nodes.Shell }

// manifest is where kubeadm has it, and stored a copy of it as it was.
const manifest, stored = "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/kube-apiserver.yaml.podenv-e2e"

// findAPIServer skips the spec where the API server is no single static pod with the gate
// on its command line.
func findAPIServer(ctx context.Context, f *framework.Framework) apiServer {
	ginkgo.GinkgoHelper()
	list, err := f.ClientSet.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "node-role.kubernetes.io/control-plane"})
	framework.ExpectNoError(err)
	if len(list.Items) != 1 {
		ginkgo.Skip(fmt.Sprintf("%d nodes are control planes", len(list.Items)))
	}
	server := apiServer{nodes.OpenShell(ctx, f, list.Items[0].Name)}
	if _, err := server.shell.TryRun(ctx, "", "grep -q "+gate+"=true "+manifest); err != nil {
		ginkgo.Skip("no " + manifest + " that turns the gate on")
	}
	server.shell.Run(ctx, "cp "+manifest+" "+stored)
	ginkgo.DeferCleanup(func(ctx context.Context) {
		server.shell.Run(ctx, "if [ -e "+stored+" ]; then mv "+stored+" "+manifest+"; fi")
		awaitGate(ctx, f, featuregates.GateOn)
	})
	return server
}

// hurry ends the API server that the kubelet asks to end. It would wait for its watches
// to end first, for as long as the kubelet lets it, 30 seconds; and the longer it is away,
// the later do clients come back.
const hurry = "(sleep 2; pkill -KILL --full '^kube-apiserver ') > /dev/null 2>&1 &"

// setGate recreates the API server's static pod with the gate, and waits until it serves.
func (s apiServer) setGate(ctx context.Context, f *framework.Framework, state featuregates.GateState) {
	ginkgo.GinkgoHelper()
	beside := stored + ".new" // the kubelet must never read half a manifest
	s.shell.Run(ctx, fmt.Sprintf("sed 's/%[1]s=[a-z]*/%[1]s=%[2]t/' %[3]s > %[4]s; mv %[4]s %[5]s; %[6]s", gate, state == featuregates.GateOn, stored, beside, manifest, hurry))
	awaitGate(ctx, f, state)
}

func awaitGate(ctx context.Context, f *framework.Framework, want featuregates.GateState) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) (featuregates.GateState, error) {
		if err := f.ClientSet.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
			return featuregates.GateUnknown, err
		}
		return components.GateAt(ctx, f.ClientSet, gate, components.APIServerMetrics)
	}).WithTimeout(f.Timeouts.PodStart).Should(gomega.Equal(want), "the gate of the API server")
}

// unlocked is the precondition of specs that turn the gate off.
func unlocked(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	components.RequireGate(ctx, gate)
	if components.Locked(gate) {
		ginkgo.Skip("the gate " + gate + " is locked in the release of the API server")
	}
}
