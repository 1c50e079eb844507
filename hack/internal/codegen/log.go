package codegen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// logger shows which generators are at work, several at once, on one step.
type logger struct {
	step *progress.Step
	out  io.Writer

	mu      sync.Mutex
	working []string
}

func newLogger(step *progress.Step) *logger {
	return &logger{step: step, out: &lineWriter{w: step.Log()}}
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
	return run.Command(ctx, name, args...).Log(&lineWriter{w: l.out})
}

// lineWriter passes on whole lines, so that commands side by side do not mix theirs.
// What follows the last line end is lost if no more is written.
type lineWriter struct {
	mu   sync.Mutex
	w    io.Writer
	part []byte
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	end := bytes.LastIndexByte(l.part, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	if _, err := l.w.Write(l.part[:end]); err != nil {
		return 0, fmt.Errorf("writing the log: %w", err)
	}
	l.part = append(l.part[:0], l.part[end:]...)
	return len(p), nil
}
