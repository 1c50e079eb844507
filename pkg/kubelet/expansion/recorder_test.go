package expansion

import (
	"fmt"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// aPod has no type of k8s.io/api: each package that a test binary has in it slows
// down fuzzing.
var aPod = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}}

// fakeRecorder keeps the events of aPod.
type fakeRecorder struct{ events []string }

func (f *fakeRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	if object != aPod {
		panic(fmt.Sprintf("event about %v", object))
	}
	f.events = append(f.events, eventtype+" "+reason+" "+message)
}

func (f *fakeRecorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...interface{}) {
	f.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

func (f *fakeRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...interface{}) {
	f.Eventf(object, eventtype, reason, messageFmt+fmt.Sprint(" ", annotations), args...)
}

// expect checks the events so far, and forgets them.
func (f *fakeRecorder) expect(t testing.TB, events ...string) {
	t.Helper()
	if len(events) != len(f.events) || len(events) > 0 && !reflect.DeepEqual(events, f.events) {
		t.Errorf("want the events\n%q, got\n%q", events, f.events)
	}
	f.events = nil
}

func TestObjectEventRecorderIsAboutItsObject(t *testing.T) {
	recorder := &fakeRecorder{}
	pod := ObjectEventRecorderFor(aPod, recorder)
	pod.Event("Normal", "Reason", "100%d as it is")
	pod.Eventf("Warning", "Reason", "%d of %s", 1, "two")
	//nolint:forbidigo // it is tested
	pod.AnnotatedEventf(map[string]string{"k": "v"}, "Warning", "Reason", "%d", 1)
	recorder.expect(t, "Normal Reason 100%d as it is", "Warning Reason 1 of two", "Warning Reason 1 map[k:v]")
}
