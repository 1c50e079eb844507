package envfiles

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/manifests"
)

var _ = describe("the user stories of KEP-3721:", func(f *framework.Framework) {
	f.It("story 1, a container without a shell gets a variable that an init container wrote", func(ctx context.Context) {
		pod, err := manifests.Pod(stories()[0])
		framework.ExpectNoError(err)
		pods.RunToEnd(ctx, f, pod)

		env := pods.Env(ctx, f, pod.Name, "use-envfile")
		gomega.Expect(env).To(gomega.HaveKeyWithValue("CONFIG_VAR", "HELLO"))
	})

	f.It("story 2, a container gets its pod's own configuration under a name of its choice", func(ctx context.Context) {
		pod, err := manifests.Pod(stories()[1])
		framework.ExpectNoError(err)
		pods.RunToEnd(ctx, f, pod)

		lines := strings.Split(pods.Log(ctx, f, pod.Name, "use-envfile"), "\n")
		gomega.Expect(lines).To(gomega.ContainElement("CONFIG_MAIN=hello"))
		gomega.Expect(lines).NotTo(gomega.ContainElement(gomega.HavePrefix("CONFIG_INIT=")))
	})
})

// stories are the manifests that the kubelets can read the env files of.
func stories() []string {
	ginkgo.GinkgoHelper()
	if envfile.Quoted() {
		return []string{"story-1-v1.35.yaml", "story-2-v1.35.yaml"}
	}
	return []string{"story-1.yaml", "story-2.yaml"}
}
