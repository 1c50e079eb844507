package expansion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/kubernetes/test/e2e/framework"
)

// unexpanded is the reason of the event under test, and started that of the one which
// the kubelet raises after it, once the container runs.
const unexpanded, started = "UnexpandedVariableReferences", "Started"

// expectOneEvent checks that the container's only start raised one event, a Warning on
// the pod, which names the container and what want says: names and places.
func expectOneEvent(ctx context.Context, f *framework.Framework, pod, container, want string) {
	ginkgo.GinkgoHelper()
	events := about(container, eventsOfStart(ctx, f, pod, container))
	gomega.Expect(events).To(gomega.HaveLen(1), "events of one start of container %s", container)
	expectToSay(events[0], container, want)
	gomega.Expect(events[0].Count).To(gomega.BeEquivalentTo(1), "how often the event was raised")
}

// expectToSay checks an event apart from how often it was raised.
func expectToSay(event v1.Event, container, want string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(event.Type).To(gomega.Equal(v1.EventTypeWarning))
	gomega.Expect(event.InvolvedObject.Kind).To(gomega.Equal("Pod"))
	gomega.Expect(event.Source.Component).To(gomega.Equal("kubelet"))
	gomega.Expect(event.Message).To(gomega.HavePrefix("Container " + container + " has references that could not be expanded: " + want + ". "))
}

// expectNoEvent checks that the container's start raised none.
func expectNoEvent(ctx context.Context, f *framework.Framework, pod, container string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(about(container, eventsOfStart(ctx, f, pod, container))).To(gomega.BeEmpty())
}

// eventsOfStart waits for the event that the container was started, and returns all
// events that were on the pod at that moment. The kubelet sends its events in the order
// in which it raises them, so what is not among them will not come.
func eventsOfStart(ctx context.Context, f *framework.Framework, pod, container string) []v1.Event {
	ginkgo.GinkgoHelper()
	return eventsOfStarts(ctx, f, pod, container, 1)
}

// eventsOfStarts is eventsOfStart for a container that is started again and again.
func eventsOfStarts(ctx context.Context, f *framework.Framework, pod, container string, starts int32) []v1.Event {
	ginkgo.GinkgoHelper()
	return awaitEvent(ctx, f, pod, fmt.Sprintf("container %s was started %d times", container, starts), func(event *v1.Event) bool {
		return event.Reason == started && isAbout(event, container) && event.Count >= starts
	})
}

// awaitEvent waits for an event on the pod that is the one, and returns all events that
// were on the pod at that moment.
func awaitEvent(ctx context.Context, f *framework.Framework, pod, what string, isTheOne func(*v1.Event) bool) []v1.Event {
	ginkgo.GinkgoHelper()
	return awaitEvents(ctx, f, pod, what, func(all []v1.Event) bool {
		return slices.ContainsFunc(all, func(event v1.Event) bool { return isTheOne(&event) })
	})
}

// awaitEvents is awaitEvent for events that are looked at together.
func awaitEvents(ctx context.Context, f *framework.Framework, pod, what string, areThose func([]v1.Event) bool) (last []v1.Event) {
	ginkgo.GinkgoHelper()
	list := framework.ListObjects(f.ClientSet.CoreV1().Events(f.Namespace.Name).List, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.name", pod).String(),
	})
	gomega.Eventually(ctx, list).WithTimeout(f.Timeouts.PodStart).WithPolling(f.Timeouts.Poll).Should(
		framework.MakeMatcher(func(events *v1.EventList) (func() string, error) {
			last = events.Items
			if areThose(last) {
				return nil, nil
			}
			return func() string {
				return fmt.Sprintf("no events on pod %s say that %s; there are\n%s", pod, what, framework.PrettyPrintJSON(events.Items))
			}, nil
		}))
	return last
}

// about are the events under test that are about the container.
func about(container string, events []v1.Event) (found []v1.Event) {
	for i, event := range events {
		if event.Reason == unexpanded && isAbout(&events[i], container) {
			found = append(found, event)
		}
	}
	return found
}

// isAbout reports whether the event is about the container called name, of whatever
// kind, rather than about its pod as a whole.
func isAbout(event *v1.Event, name string) bool {
	return strings.HasSuffix(event.InvolvedObject.FieldPath, "{"+name+"}")
}
