package codegen

import (
	"slices"
	"strings"
	"sync"

	"podenv.dev/hack/internal/progress"
)

// logger shows on one step which generators are running, several at once.
type logger struct {
	step *progress.Step

	mu      sync.Mutex
	running []string
}

// start shows that what is being generated, until the returned function is called.
func (l *logger) start(what string) (done func()) {
	l.update(func() { l.running = append(l.running, what) })
	return func() {
		l.update(func() {
			if i := slices.Index(l.running, what); i >= 0 {
				l.running = slices.Delete(l.running, i, i+1)
			}
		})
	}
}

func (l *logger) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	if len(l.running) > 0 {
		l.step.Now("generating %s", strings.Join(l.running, ", "))
	}
}
