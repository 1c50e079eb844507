// Package nodes operates the nodes of a cluster:
//   - Shell runs commands on any node that takes a privileged pod.
//   - Node is a node of a cluster that podenv made. It runs `podenv node`, as a user would:
//     drain, swap a build, set a gate. Each returns once the component itself reports that it
//     serves as requested; after a failure the node is as it was before.
//   - APIServerPair runs a second API server beside the one of a kubeadm control plane: on
//     the same node and the same etcd, with feature gates off, as during the upgrade of a
//     control plane of several nodes. Both serve behind one endpoint.
package nodes

import (
	"context"
	"encoding/json"
	"path"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

// Shell is a root shell in the Linux namespaces of a node.
type Shell struct {
	f    *framework.Framework
	node string
}

const container = "shell"

func (s Shell) pod() string { return "shell-on-" + s.node }

// OpenShell makes the pod behind a shell on node, unless f's namespace has it already. The
// namespace must allow privileged pods, and takes the pod with it when it is deleted.
func OpenShell(ctx context.Context, f *framework.Framework, node string) Shell {
	ginkgo.GinkgoHelper()
	s := Shell{f: f, node: node}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.pod()},
		Spec: v1.PodSpec{
			NodeName:    node, // bypasses the scheduler, so that it can be a control plane
			Tolerations: []v1.Toleration{{Operator: v1.TolerationOpExists}},
			HostPID:     true,
			HostNetwork: true,
			Containers: []v1.Container{{
				Name: container, Image: images.Busybox, ImagePullPolicy: v1.PullNever,
				Command:         []string{"sleep", "3600"},
				SecurityContext: &v1.SecurityContext{Privileged: ptr.To(true)},
			}},
		},
	}
	if _, err := pods.TryCreate(ctx, f, pod); !apierrors.IsAlreadyExists(err) {
		framework.ExpectNoError(err)
	}
	pods.Await(ctx, f, pod.Name, "it to run", func(pod *v1.Pod) bool {
		return pods.Status(pod, container).State.Running != nil
	})
	return s
}

// Run runs a script on the node and returns its output. The script must contain no secret, as
// the API server may log it.
func (s Shell) Run(ctx context.Context, script string) string {
	ginkgo.GinkgoHelper()
	return s.RunWith(ctx, "", script)
}

// RunWith is Run for a script that reads stdin, which no component logs.
func (s Shell) RunWith(ctx context.Context, stdin, script string) string {
	ginkgo.GinkgoHelper()
	out, err := s.TryRun(ctx, stdin, script)
	framework.ExpectNoError(err, "on node %s: %s", s.node, script)
	return out
}

// TryRun is RunWith where the shell, or the script, may fail.
func (s Shell) TryRun(ctx context.Context, stdin, script string) (string, error) {
	return pods.TryExec(ctx, s.f, s.pod(), container, stdin,
		"nsenter", "-t", "1", "-m", "-u", "-i", "-n", "-p", "--", "sh", "-ec", script)
}

// RunStaticPod runs a static pod on a node until the end of the spec, and returns the name of
// its mirror pod once the API server has it. It skips the spec if the kubelet reads no
// manifests. The namespace must allow privileged pods.
func RunStaticPod(ctx context.Context, f *framework.Framework, pod *v1.Pod) (mirror string) {
	ginkgo.GinkgoHelper()
	node, err := e2enode.GetRandomReadySchedulableNode(ctx, f.ClientSet)
	framework.ExpectNoError(err)
	var config struct{ StaticPodPath string }
	framework.ExpectNoError(components.KubeletConfig(ctx, f.ClientSet, node.Name, &config))
	if config.StaticPodPath == "" {
		ginkgo.Skip("the kubelet of node " + node.Name + " has no staticPodPath")
	}
	pod = pod.DeepCopy()
	pod.APIVersion, pod.Kind, pod.Namespace = "v1", "Pod", f.Namespace.Name
	pods.Quick(&pod.Spec)
	manifest, err := json.Marshal(pod)
	framework.ExpectNoError(err)

	shell := OpenShell(ctx, f, node.Name)
	file := path.Join(config.StaticPodPath, f.Namespace.Name+".json")
	ginkgo.DeferCleanup(func(ctx context.Context) { shell.Run(ctx, "rm -f "+file) })
	// The kubelet ignores a file whose name begins with a dot.
	hidden := path.Join(config.StaticPodPath, "."+f.Namespace.Name)
	shell.RunWith(ctx, string(manifest), "mkdir -p "+config.StaticPodPath+"; cat > "+hidden+"; mv "+hidden+" "+file)

	mirror = pod.Name + "-" + node.Name
	get := framework.RetryNotFound(framework.GetObject(f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get, mirror, metav1.GetOptions{}))
	gomega.Eventually(ctx, get).WithTimeout(f.Timeouts.PodStartShort).Should(gomega.HaveField("Name", mirror), "the mirror pod")
	return mirror
}
