package codegen

import (
	"slices"
	"strings"
	"sync"

	"podenv.dev/hack/internal/progress"
)

// logger shows which generators are at work, several at once, on one step.
type logger struct {
	step *progress.Step

	mu      sync.Mutex
	working []string
}

// start shows that what is being made, until the returned function is called.
func (l *logger) start(what string) (done func()) {
	l.update(func() { l.working = append(l.working, what) })
	return func() {
		l.update(func() {
			if i := slices.Index(l.working, what); i >= 0 {
				l.working = slices.Delete(l.working, i, i+1)
			}
		})
	}
}

func (l *logger) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	if len(l.working) > 0 {
		l.step.Now("generating %s", strings.Join(l.working, ", "))
	}
}
