package expansion

import (
	"context"

	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

var _ = describeIf(components.RequireGateOffInKubelets, "with the gate off", func(f *framework.Framework) {
	f.It("every form of a reference has the result that it has with the gate on, and no event is raised", suite.Shows("Variable expansion", "unmatched", "escape", "malformed"), func(ctx context.Context) {
		pod := everyForm()
		pods.RunToEnd(ctx, f, pod)

		expectEveryForm(ctx, f, pod.Name)
		for _, container := range []string{consumer, printer} {
			gomega.Expect(eventsOfStart(ctx, f, pod.Name, container)).NotTo(gomega.ContainElement(gomega.HaveField("Reason", unexpanded)))
		}
	})
})

var _ = describe("with the gate on", func(f *framework.Framework) {
	f.It("every form of a reference has the result that it has with the gate off, and each container raises an event", suite.Shows("Variable expansion", "unmatched", "escape", "malformed"), func(ctx context.Context) {
		pod := everyForm()
		pods.RunToEnd(ctx, f, pod)

		expectEveryForm(ctx, f, pod.Name)
		expectOneEvent(ctx, f, pod.Name, consumer, "$(NONE) (env NOT_DECLARED), $(A$(A) (env NESTED)")
		expectOneEvent(ctx, f, pod.Name, printer, "$(NONE) (command, args)")
	})
})
