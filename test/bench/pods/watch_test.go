package pods

import (
	"sync"
	"time"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// podWatch knows when the pods of a namespace were scheduled, and what they wait for.
type podWatch struct {
	mu        sync.Mutex
	scheduled map[string]time.Time // by our clock, as the watch says so
	state     map[string]string    // of the main container; empty while it runs
	ended     bool
}

func newPodWatch(w watch.Interface) *podWatch {
	p := &podWatch{scheduled: map[string]time.Time{}, state: map[string]string{}}
	go func() {
		for event := range w.ResultChan() {
			p.note(time.Now(), event)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = true
	}()
	return p
}

func (p *podWatch) note(now time.Time, event watch.Event) {
	pod, ok := event.Object.(*v1.Pod)
	if !ok {
		return // an error, which ends the watch
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, seen := p.scheduled[pod.Name]; !seen && pod.Spec.NodeName != "" {
		p.scheduled[pod.Name] = now
	}
	p.state[pod.Name] = "not started"
	for _, status := range pod.Status.ContainerStatuses {
		switch {
		case status.State.Running != nil && event.Type != watch.Deleted:
			p.state[pod.Name] = ""
		case status.State.Waiting != nil:
			p.state[pod.Name] = status.State.Waiting.Reason + " " + status.State.Waiting.Message
		}
	}
}

// waiting says for each of the pods named that does not run what its main container waits
// for.
func (p *podWatch) waiting(names []string) (waiting []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		if state, known := p.state[name]; !known || state != "" {
			waiting = append(waiting, name+": "+state)
		}
	}
	if p.ended {
		err = gomega.StopTrying("the watch of the pods ended")
	}
	return waiting, err
}

// scheduledAt is when the pod called name was seen with a node.
func (p *podWatch) scheduledAt(name string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scheduled[name]
}
