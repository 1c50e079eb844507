package pods

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/kubernetes/test/e2e/framework"
)

// ConfigError is the reason of a waiting container whose configuration, such as its
// environment, the kubelet cannot create.
const ConfigError = "CreateContainerConfigError"

// AwaitConfigError waits until the container waits with CreateContainerConfigError
// and a Warning event on it says why. It returns the event.
func AwaitConfigError(ctx context.Context, f *framework.Framework, pod, container string) *v1.Event {
	ginkgo.GinkgoHelper()
	event := awaitFailedEvent(ctx, f, pod, container)
	// The kubelet updates the status only when it next syncs the pod.
	Nudge(ctx, f, pod)
	Await(ctx, f, pod, fmt.Sprintf("container %s to wait with %s", container, ConfigError), func(pod *v1.Pod) bool {
		waiting := Status(pod, container).State.Waiting
		return waiting != nil && waiting.Reason == ConfigError
	})
	return event
}

// awaitFailedEvent waits for a Warning event that says why the container cannot start.
func awaitFailedEvent(ctx context.Context, f *framework.Framework, pod, container string) (found *v1.Event) {
	ginkgo.GinkgoHelper()
	list := framework.ListObjects(f.ClientSet.CoreV1().Events(f.Namespace.Name).List, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.name": pod, "type": v1.EventTypeWarning}.String(),
	})
	gomega.Eventually(ctx, list).WithTimeout(timeout).WithPolling(poll).Should(
		framework.MakeMatcher(func(events *v1.EventList) (func() string, error) {
			for i, event := range events.Items {
				if event.Reason == "Failed" && strings.HasSuffix(event.InvolvedObject.FieldPath, "{"+container+"}") {
					found = &events.Items[i]
					return nil, nil
				}
			}
			return func() string {
				return fmt.Sprintf("no Warning event on container %s of pod %s says why it cannot start; there are\n%s",
					container, pod, framework.PrettyPrintJSON(events.Items))
			}, nil
		}))
	return found
}

// EventsAndStatus returns all that a user sees of the pod name: its status and its events.
func EventsAndStatus(ctx context.Context, f *framework.Framework, name string) string {
	ginkgo.GinkgoHelper()
	pod, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get(ctx, name, metav1.GetOptions{})
	framework.ExpectNoError(err)
	events, err := f.ClientSet.CoreV1().Events(f.Namespace.Name).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.name", name).String(),
	})
	framework.ExpectNoError(err)
	return framework.PrettyPrintJSON(pod.Status) + framework.PrettyPrintJSON(events.Items)
}
