package expansion

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
)

var _ = describe("no event is raised", func(f *framework.Framework) {
	f.It("where every reference is expanded", func(ctx context.Context) {
		expectSilence(ctx, f, pods.Once("expanded", prints([]string{"$(A)"}, []string{"$(B)"}, literal("A", "a"), literal("B", "$(A)"))))
	})

	f.It("about references that are escaped", func(ctx context.Context) {
		expectSilence(ctx, f, pods.Once("escaped", prints([]string{"$$(NONE)"}, []string{"$$(NONE)"}, literal("A", "$$(NONE) $$$$(NONE)"))))
	})

	f.It("about malformed references", func(ctx context.Context) {
		malformed := "$NONE ${NONE} (NONE) $ $(NONE"
		expectSilence(ctx, f, pods.Once("malformed", prints([]string{malformed}, []string{malformed}, literal("A", malformed))))
	})

	f.It("about what no variable can be called", func(ctx context.Context) {
		impossible := "$() $(A=1 date) $(\n) $(GRÖSSE)"
		expectSilence(ctx, f, pods.Once("impossible", prints([]string{impossible}, []string{impossible}, literal("A", impossible))))
	})

	f.It("about what a value from a ConfigMap or a Secret looks like", func(ctx context.Context) {
		values := map[string]string{"key": looksExpandable}
		createSources(ctx, f, values, values)
		expectSilence(ctx, f, pods.Once("values", prints([]string{"$(CONFIG_MAP)"}, []string{"$(SECRET)"},
			fromConfigMap("CONFIG_MAP", "key"), fromSecret("SECRET", "key"), literal("BOTH", "$(CONFIG_MAP)$(SECRET)"))))
	})

	f.It("about what a value from an env file looks like", func(ctx context.Context) {
		components.RequireGate(ctx, envFiles)
		expectSilence(ctx, f, withFile(pods.Once("file-value", prints(nil, []string{"$(FILE)"},
			fromFile("FILE", "KEY"), literal("A", "$(FILE)"))), "KEY="+looksExpandable+"\n"))
	})
})

// expectSilence runs pod and checks that no start of its containers raised an event.
func expectSilence(ctx context.Context, f *framework.Framework, pod *v1.Pod) {
	ginkgo.GinkgoHelper()
	pods.RunToEnd(ctx, f, pod)
	gomega.Expect(eventsOfStart(ctx, f, pod.Name, consumer)).NotTo(gomega.ContainElement(gomega.HaveField("Reason", unexpanded)))
}
