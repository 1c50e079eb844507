package podpreset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/settings/inject"
	"k8s.io/klog/v2"
)

const (
	// eventDelay is how long after its admission a pod is looked for: it is stored by
	// then, or it was refused.
	eventDelay = time.Second
	// maxPending is for how many pods events can wait. More are dropped: their clients
	// have been warned.
	maxPending = 1000
	// maxEvents is how many events a pod gets. If more presets are in conflict, the last
	// event counts those without an event of their own.
	maxEvents = 10
	// eventReason is the reason that the design document gives.
	eventReason = "conflict"
)

// eventQueue raises events on pods that were not there yet when the conflict was found.
type eventQueue struct {
	client  kubernetes.Interface
	stopCh  <-chan struct{}
	pending chan podConflicts
	start   sync.Once
}

// podConflicts are the presets that one pod has not got.
type podConflicts struct {
	namespace, name string
	uid             types.UID
	conflicts       []inject.Conflict
	more            int // conflicts that are not in conflicts
	found           time.Time
}

func newEventQueue(client kubernetes.Interface, stopCh <-chan struct{}) *eventQueue {
	return &eventQueue{client: client, stopCh: stopCh, pending: make(chan podConflicts, maxPending)}
}

// add has events raised once the pod is there. It does not wait.
func (q *eventQueue) add(namespace, name string, uid types.UID, conflicts []inject.Conflict) {
	if len(conflicts) == 0 {
		return
	}
	more := 0
	if len(conflicts) > maxEvents {
		more = len(conflicts) - (maxEvents - 1)
		conflicts = slices.Clone(conflicts[:maxEvents-1]) // the others need no memory while it waits
	}
	q.start.Do(func() { go q.run() })
	select {
	case q.pending <- podConflicts{namespace, name, uid, conflicts, more, time.Now()}:
	default:
		klog.V(2).InfoS("No event for the conflicts of PodPresets: too many are pending", "pod", klog.KRef(namespace, name))
	}
}

// run raises events until the API server ends.
func (q *eventQueue) run() {
	defer utilruntime.HandleCrash()
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: q.client.CoreV1().Events("")})
	for {
		select {
		case <-q.stopCh:
			return
		case pod := <-q.pending:
			select {
			case <-q.stopCh:
				return
			case <-time.After(time.Until(pod.found.Add(eventDelay))):
			}
			q.raise(broadcaster, pod)
		}
	}
}

// raise raises the events of one pod, if it was created.
func (q *eventQueue) raise(broadcaster record.EventBroadcaster, p podConflicts) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pod, err := q.client.CoreV1().Pods(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil || pod.UID != p.uid {
		return
	}
	event := func(source, message string) {
		broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: source}).Event(pod, v1.EventTypeWarning, eventReason, message)
	}
	for _, conflict := range p.conflicts {
		event(inject.AnnotationPrefix+conflict.Preset.Name, conflict.Message())
	}
	if p.more > 0 {
		event(strings.TrimSuffix(inject.AnnotationPrefix, "/"), fmt.Sprintf("Conflict on pod preset. %d more PodPresets are in conflict.", p.more))
	}
}
