package envfiles

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
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
)

var _ = describe("a static pod", func(f *framework.Framework) {
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged // to write a manifest onto the node

	f.It("takes variables from an env file, again at each start of the container", func(ctx context.Context) {
		node, err := e2enode.GetRandomReadySchedulableNode(ctx, f.ClientSet)
		framework.ExpectNoError(err)
		var config struct{ StaticPodPath string }
		framework.ExpectNoError(components.KubeletConfig(ctx, f.ClientSet, node.Name, &config))
		if config.StaticPodPath == "" {
			ginkgo.Skip("the kubelet of node " + node.Name + " has no staticPodPath")
		}

		static := newPod("envfiles-static",
			[]v1.Container{sidecar("echo A=first > /data/config.env")},
			pods.Dumps(consumer, from("A", "config.env", "A")))
		static.APIVersion, static.Kind, static.Namespace = "v1", "Pod", f.Namespace.Name
		static.Spec.RestartPolicy = v1.RestartPolicyAlways
		pods.Quick(&static.Spec)
		manifest, err := json.Marshal(static)
		framework.ExpectNoError(err)

		// The API server knows a static pod by this name.
		mirror := static.Name + "-" + node.Name
		shellOnNode := nodes.OpenShell(ctx, f, node.Name)
		file := path.Join(config.StaticPodPath, f.Namespace.Name+".json")
		ginkgo.DeferCleanup(func(ctx context.Context) { shellOnNode.Run(ctx, "rm -f "+file) })
		// The kubelet ignores a file whose name begins with a dot.
		hidden := path.Join(config.StaticPodPath, "."+f.Namespace.Name)
		shellOnNode.RunWith(ctx, string(manifest), "mkdir -p "+config.StaticPodPath+"; cat > "+hidden+"; mv "+hidden+" "+file)

		awaitMirror(ctx, f, mirror)
		awaitValue(ctx, f, mirror, "A", "first")
		shell(ctx, f, mirror, "echo A=second > /data/new && mv /data/new /data/config.env")
		awaitValue(ctx, f, mirror, "A", "second")
	})
})

// awaitMirror waits until the API server has the mirror of a static pod.
func awaitMirror(ctx context.Context, f *framework.Framework, name string) {
	ginkgo.GinkgoHelper()
	get := framework.RetryNotFound(framework.GetObject(f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get, name, metav1.GetOptions{}))
	gomega.Eventually(ctx, get).WithTimeout(f.Timeouts.PodStartShort).Should(gomega.HaveField("Name", name), "the mirror of the static pod")
}
