package expansion

import (
	"context"

	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

var _ = describe("kubectl", func(f *framework.Framework) {
	f.It("describe pod shows the event with container, names and places", func(ctx context.Context) {
		pod := pods.Once("described", prints(nil, []string{"$(PORT)"}, literal("URL", "http://$(HOST)")))
		pods.RunToEnd(ctx, f, pod)
		expectOneEvent(ctx, f, pod.Name, consumer, "$(HOST) (env URL), $(PORT) (args)")

		place := ""
		if components.AtLeast("v1.35") { // kubectl describe shows from then on what an event is about
			place = `spec\.containers\{app\}: `
		}
		text := suite.RunKubectl(ctx, "describe", "pod", pod.Name, "--namespace", f.Namespace.Name)
		gomega.Expect(text).To(gomega.MatchRegexp(
			`(?m)^\s+Warning\s+UnexpandedVariableReferences\s+\S+\s+kubelet\s+` + place + `Container app has .*: \$\(HOST\) \(env URL\), \$\(PORT\) \(args\)\.`))
	})
})
