package podpreset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	// eventDelay is how long after its admission a pod is looked for. If it is not stored
	// by then, it is looked for again after twice as long, and so on: webhooks that judge
	// it may take 30 seconds, and it may have been refused.
	eventDelay = time.Second
	// eventTries is how often a pod is looked for, the last time after a minute.
	eventTries = 6
	// maxPending is for how many pods events can wait. More are dropped: their clients
	// have been warned. Half of them may wait for a second try, so that pods that are
	// refused by the thousand take no events from others.
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
	pending atomic.Int32
	after   func(time.Duration, func()) // runs a function later

	start       sync.Once
	broadcaster record.EventBroadcaster
	raising     sync.Mutex // one pod at a time
}

// podConflicts are the presets that one pod has not got.
type podConflicts struct {
	namespace, name string
	uid             types.UID
	conflicts       []inject.Conflict
	more            int // conflicts that are not in conflicts
}

func newEventQueue(client kubernetes.Interface, stopCh <-chan struct{}) *eventQueue {
	after := func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	return &eventQueue{client: client, stopCh: stopCh, after: after}
}

// add has events raised once the pod is there. It does not wait.
func (q *eventQueue) add(namespace, name string, uid types.UID, conflicts []inject.Conflict) {
	more := 0
	if len(conflicts) > maxEvents {
		more = len(conflicts) - (maxEvents - 1)
		conflicts = slices.Clone(conflicts[:maxEvents-1]) // the others need no memory while it waits
	}
	if q.pending.Add(1) > maxPending {
		q.pending.Add(-1)
		klog.V(2).InfoS("No event for the conflicts of PodPresets: too many are pending", "pod", klog.KRef(namespace, name))
		return
	}
	q.start.Do(q.run)
	q.await(podConflicts{namespace, name, uid, conflicts, more}, 0)
}

// run sends the events that are raised, until the API server ends.
func (q *eventQueue) run() {
	q.broadcaster = record.NewBroadcaster()
	q.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: q.client.CoreV1().Events("")})
	go func() {
		<-q.stopCh
		q.broadcaster.Shutdown()
	}()
}

// await raises the events of p once its pod is there, after so many tries.
func (q *eventQueue) await(p podConflicts, tries int) {
	q.after(eventDelay<<tries, func() {
		defer utilruntime.HandleCrash()
		if !q.raise(p) && tries+1 < eventTries && q.pending.Load() <= maxPending/2 {
			q.await(p, tries+1)
			return
		}
		q.pending.Add(-1)
	})
}

// raise raises the events of one pod, and returns false if there is no such pod.
func (q *eventQueue) raise(p podConflicts) (done bool) {
	q.raising.Lock()
	defer q.raising.Unlock()
	select {
	case <-q.stopCh:
		return true
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pod, err := q.client.CoreV1().Pods(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	if pod.UID != p.uid {
		return true
	}
	event := func(source, message string) {
		q.broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: source}).Event(pod, v1.EventTypeWarning, eventReason, message)
	}
	for _, conflict := range p.conflicts {
		event(inject.AnnotationPrefix+conflict.Preset.Name, conflict.Message())
	}
	if p.more > 0 {
		event(strings.TrimSuffix(inject.AnnotationPrefix, "/"), fmt.Sprintf("Conflict on pod preset. %d more PodPresets are in conflict.", p.more))
	}
	return true
}
