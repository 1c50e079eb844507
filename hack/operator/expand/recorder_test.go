package expand

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"podenv.dev/pkg/kubelet/expansion"
)

// The leaf package names no type of client-go or of the API, but works with them.
func TestTheExpansionPackageTakesARecorderOfClientGo(t *testing.T) {
	fake := record.NewFakeRecorder(1)
	var recorder record.EventRecorder = fake
	pod := &corev1.ObjectReference{Kind: "Pod", Name: "app"}
	mapping := expansion.MappingFuncFor(expansion.ObjectEventRecorderFor(pod, recorder), nil)
	if got := expansion.Expand("$(X)", mapping); got != "$(X)" {
		t.Errorf("got %q", got)
	}
	if want, got := corev1.EventTypeWarning+" "+expansion.UnexpandedReferencesReason+" Could not expand $(X)", <-fake.Events; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
