package expansion

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
)

var _ = describe("a container in a crash loop", func(f *framework.Framework) {
	f.It("has one event whose count grows with its starts, rather than one event each", func(ctx context.Context) {
		crashes := dumps(literal("A", "$(NONE)"))
		crashes.Args = []string{"unknown"} // for which envdump exits with an error
		pod := pods.Once("crashes", crashes)
		pod.Spec.RestartPolicy = v1.RestartPolicyAlways
		pods.Create(ctx, f, pod)

		all := eventsOfStarts(ctx, f, pod.Name, consumer, 3)
		events := about(consumer, all)
		gomega.Expect(events).To(gomega.HaveLen(1))
		expectToSay(events[0], consumer, "$(NONE) (env A)")
		// One for each start that has an event, and maybe for the next, whose event comes
		// a moment later.
		starts := countOf(started, all)
		gomega.Expect(events[0].Count).To(gomega.BeElementOf(starts, starts+1), "after %d starts", starts)
	})

	// Three starts of nine containers raise more than the 25 warnings that a pod is given at once.
	f.It("has its events whatever other containers of the pod raise, and they take none of BackOff's", func(ctx context.Context) {
		pod := pods.Once("crash")
		pod.Spec.RestartPolicy = v1.RestartPolicyAlways
		for i := range 9 { // client-go combines ten
			crashes := dumps(literal("A", "$(NONE)"))
			crashes.Name, crashes.Args = fmt.Sprint(consumer, i), []string{"unknown"}
			pod.Spec.Containers = append(pod.Spec.Containers, crashes)
		}
		pods.Create(ctx, f, pod)

		var backOffs int32
		if components.AtLeast("v1.32") { // before that, events that are no warnings count, too
			backOffs = 9
		}
		awaitEvents(ctx, f, pod.Name, "all containers have three events, and have backed off", func(all []v1.Event) bool {
			return countOf("BackOff", all) >= backOffs &&
				!slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool { return countOf(unexpanded, about(c.Name, all)) < 3 })
		})
	})
})

// countOf is how often the events of that reason were raised.
func countOf(reason string, events []v1.Event) (count int32) {
	for _, event := range events {
		if event.Reason == reason {
			count += event.Count
		}
	}
	return count
}
