package tekton

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/nodes"
)

var _ = describe("podenv tekton", func(f *framework.Framework) {
	ginkgo.BeforeEach(nodes.RequirePodenv)

	f.It("shows the end of the log of a webhook that does not come up", framework.WithSerial(), func(ctx context.Context) {
		rule := breakDefaults(ctx, f)
		pods := f.ClientSet.CoreV1().Pods(system)
		before, err := pods.List(ctx, metav1.ListOptions{LabelSelector: podsOf("webhook")})
		framework.ExpectNoError(err)
		for _, pod := range before.Items {
			framework.ExpectNoError(pods.Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0)))
		}
		out, err := podenvTekton(ctx, "--timeout=30s")
		gomega.Expect(err).To(gomega.HaveOccurred())
		gomega.Expect(out).To(gomega.And(
			gomega.ContainSubstring("the webhook and the controller of Tekton do not serve"),
			gomega.ContainSubstring("the last lines of the log of pod tekton-pipelines-webhook"),
			gomega.ContainSubstring(rule),
		))
	})

	f.It("marks runs and pods with the release and the number of patches", func(ctx context.Context) {
		controller, err := f.ClientSet.AppsV1().Deployments(system).Get(ctx, "tekton-pipelines-controller", metav1.GetOptions{})
		framework.ExpectNoError(err)
		// The image's tag is the version, with _ for +, and a hash.
		image := controller.Spec.Template.Spec.Containers[0].Image
		tag := image[strings.LastIndex(image, ":")+1:]
		version := strings.ReplaceAll(tag[:strings.LastIndex(tag, "-")], "_", "+")
		gomega.Expect(version).To(gomega.MatchRegexp(`^v[0-9]+\.[0-9]+\.[0-9]+`), image)

		run := taskRun("", "")
		succeed(ctx, f, run)
		run, err = client(f).Resource(run).Get(ctx, run.GetName(), metav1.GetOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(run.GetAnnotations()).To(gomega.HaveKeyWithValue("pipeline.tekton.dev/release", version))
		pods, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(pods.Items).To(gomega.HaveLen(1))
		gomega.Expect(pods.Items[0].Annotations).To(gomega.HaveKeyWithValue("pipeline.tekton.dev/release", version))
	})

	f.It("refuses a cluster that has another Tekton, and applies nothing", framework.WithSerial(), func(ctx context.Context) {
		crds := f.DynamicClient.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		label := func(ctx context.Context, value string) {
			ginkgo.GinkgoHelper()
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":%q}}}`, value)
			_, err := crds.Patch(ctx, "tasks.tekton.dev", types.MergePatchType, patch, metav1.PatchOptions{})
			framework.ExpectNoError(err)
		}
		label(ctx, "others")
		ginkgo.DeferCleanup(label, "podenv")
		before, err := crds.Get(ctx, "tasks.tekton.dev", metav1.GetOptions{})
		framework.ExpectNoError(err)
		out, err := podenvTekton(ctx)
		gomega.Expect(err).To(gomega.HaveOccurred())
		gomega.Expect(out).To(gomega.ContainSubstring("the cluster cannot have Tekton: it has another one"))
		after, err := crds.Get(ctx, "tasks.tekton.dev", metav1.GetOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(after.GetResourceVersion()).To(gomega.Equal(before.GetResourceVersion()))
	})
})

// podenvTekton runs podenv tekton on the cluster and returns what it printed.
func podenvTekton(ctx context.Context, flags ...string) (string, error) {
	args := append([]string{"--plain", "tekton", "--name", nodes.Options.Cluster}, flags...)
	ginkgo.By(fmt.Sprintf("podenv %q", args))
	out, err := exec.CommandContext(ctx, nodes.Options.Podenv, args...).CombinedOutput()
	ginkgo.GinkgoWriter.Print(string(out))
	return string(out), err
}
