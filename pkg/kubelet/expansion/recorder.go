package expansion

import "k8s.io/apimachinery/pkg/runtime"

// EventRecorder is what ObjectEventRecorderFor needs. An EventRecorder of
// k8s.io/client-go/tools/record is one.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...interface{})
	AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...interface{})
}

// ObjectEventRecorder knows how to record events about a single object. Its
// methods are those of EventRecorder without the object. Since the document was
// written, events have got a type, and annotations in place of a timestamp.
//
// Document: Variable expansion, "Event recording".
type ObjectEventRecorder interface {
	// Event queues an event for sending. The type is Normal or Warning; the
	// reason is one word in CamelCase, for programs; the message is for people.
	Event(eventtype, reason, message string)
	// Eventf is Event with a format for the message.
	Eventf(eventtype, reason, messageFmt string, args ...interface{})
	// AnnotatedEventf is Eventf with annotations on the event.
	AnnotatedEventf(annotations map[string]string, eventtype, reason, messageFmt string, args ...interface{})
}

// ObjectEventRecorderFor returns an ObjectEventRecorder that records events about
// object with recorder.
func ObjectEventRecorderFor(object runtime.Object, recorder EventRecorder) ObjectEventRecorder {
	return &objectEventRecorder{object: object, recorder: recorder}
}

type objectEventRecorder struct {
	object   runtime.Object
	recorder EventRecorder
}

func (r *objectEventRecorder) Event(eventtype, reason, message string) {
	r.recorder.Event(r.object, eventtype, reason, message)
}

func (r *objectEventRecorder) Eventf(eventtype, reason, messageFmt string, args ...interface{}) {
	r.recorder.Eventf(r.object, eventtype, reason, messageFmt, args...)
}

func (r *objectEventRecorder) AnnotatedEventf(annotations map[string]string, eventtype, reason, messageFmt string, args ...interface{}) {
	//nolint:forbidigo // as in EventRecorder; the kubelet does not call it
	r.recorder.AnnotatedEventf(r.object, annotations, eventtype, reason, messageFmt, args...)
}
