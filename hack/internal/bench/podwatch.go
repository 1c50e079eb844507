package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"podenv.dev/hack/internal/stories"
)

// podWatch notes when the pods of a namespace are scheduled, and which run.
type podWatch struct {
	mu        sync.Mutex
	scheduled map[string]time.Time // by our clock, as the watch says so
	running   map[string]bool      // its main container
	failed    error
	changed   chan struct{} // closed and made anew with every change
}

// newPodWatch follows w until it ends.
func newPodWatch(w watch.Interface) *podWatch {
	p := &podWatch{scheduled: map[string]time.Time{}, running: map[string]bool{}, changed: make(chan struct{})}
	go func() {
		for event := range w.ResultChan() {
			p.note(time.Now(), event)
		}
		p.fail(errors.New("the watch of the pods ended"))
	}()
	return p
}

func (p *podWatch) note(now time.Time, event watch.Event) {
	pod, ok := event.Object.(*v1.Pod)
	if !ok {
		p.fail(fmt.Errorf("the watch of the pods failed: %v", event.Object))
		return
	}
	// A pod that is being deleted may well fail.
	if err := stories.Failure(pod); err != nil && pod.DeletionTimestamp == nil {
		p.fail(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, seen := p.scheduled[pod.Name]; !seen && pod.Spec.NodeName != "" {
		p.scheduled[pod.Name] = now
	}
	p.running[pod.Name] = event.Type != watch.Deleted && slices.ContainsFunc(pod.Status.ContainerStatuses, func(s v1.ContainerStatus) bool {
		return s.State.Running != nil
	})
	p.tell()
}

func (p *podWatch) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.failed = err
	}
	p.tell()
}

// tell wakes those who await something; p.mu is held.
func (p *podWatch) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// awaitRunning waits until the main containers of all the pods named run.
func (p *podWatch) awaitRunning(ctx context.Context, names []string) error {
	for {
		p.mu.Lock()
		missing := slices.IndexFunc(names, func(name string) bool { return !p.running[name] })
		failed, changed := p.failed, p.changed
		p.mu.Unlock()
		switch {
		case failed != nil:
			return failed
		case missing < 0:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("pod %s does not run yet: %w", names[missing], context.Cause(ctx))
		}
	}
}

// scheduledAt is when the pod called name was seen with a node.
func (p *podWatch) scheduledAt(name string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scheduled[name]
}
