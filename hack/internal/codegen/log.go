package codegen

import (
	"context"
	"slices"
	"strings"
	"sync"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// logger shows which generators are at work, several at once, on one step.
type logger struct {
	step *progress.Step

	mu      sync.Mutex
	working []string
}

func newLogger(step *progress.Step) *logger {
	return &logger{step: step}
}

func (l *logger) now(format string, args ...any) { l.step.Now(format, args...) }

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

// command is a command whose output goes to the step's log.
func (l *logger) command(ctx context.Context, name string, args ...string) *run.Cmd {
	return run.Command(ctx, name, args...).Log(l.step.Log())
}
