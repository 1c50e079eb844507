package nodes

import (
	"context"
	"encoding/json"
	"path"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
)

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
