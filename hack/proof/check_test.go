package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
)

// lane is a test whose checks run one after another. Lanes run in parallel.
type lane struct{ *testing.T }

func newLane(t *testing.T) lane {
	t.Helper()
	requireSeries(t)
	t.Parallel()
	return lane{t}
}

// check is one check of the table in docs/testing.md.
type check struct {
	*testing.T
	ctx    context.Context
	step   *progress.Step
	failed []string // parts, and why
	// uncached keeps upstreamTestsOf from taking results from Go's cache.
	uncached bool
}

// check runs a check if its group is selected. need makes its fixtures. The check fails if prove
// returns an error or one of its parts fails; an error that is skipped skips it.
func (l lane) check(name, group string, need func(*check), prove func(*check) error) {
	if !slices.Contains(groups, group) {
		return
	}
	l.Run(name, func(t *testing.T) {
		c := &check{T: t, ctx: ctx}
		c.skipIfInterrupted()
		need(c)
		c.step = steps.Reporter.Step(name)
		// For a panic or t.Fatal: otherwise the step has ended by then.
		defer c.step.End(errors.New("see the summary")) //nolint:errcheck // it is shown
		err := prove(c)
		var reason skipped
		switch {
		case errors.As(err, &reason):
			c.step.Cached("skipped: " + string(reason))
			c.step.End(ctx.Err()) //nolint:errcheck // it says so
			c.Skip(string(reason))
		case ctx.Err() != nil:
			c.step.End(ctx.Err()) //nolint:errcheck // it says so
			c.skipIfInterrupted()
		}
		if err == nil && t.Failed() {
			err = fmt.Errorf("%d failed", len(c.failed))
		}
		if err == nil {
			c.step.End(nil) //nolint:errcheck // it is nil
			return
		}
		err = remedy.Explain(err)
		t.Error(c.step.End(err))
		c.printFailures(err)
	})
}

// prepare makes fixtures for a check of another lane, in group, so that it need not wait for them.
func (l lane) prepare(name, group string, need func(*check)) {
	if slices.Contains(groups, group) {
		l.Run(name, func(t *testing.T) {
			c := &check{T: t, ctx: ctx}
			c.skipIfInterrupted()
			need(c)
		})
	}
}

// printFailures prints the failures at once, for users who follow the run.
func (c *check) printFailures(err error) {
	const most = 10
	if len(c.failed) == 0 {
		c.failed = []string{gist(err)}
	}
	for _, failed := range c.failed[:min(most, len(c.failed))] {
		steps.Reporter.Print("        " + failed)
	}
	if len(c.failed) > most {
		steps.Reporter.Print("        and more: see the summary")
	}
	steps.Reporter.Print("        full log: " + c.step.LogPath())
}

func gist(err error) string { return (&junit.Message{Text: err.Error()}).Gist() }

func (c *check) skipIfInterrupted() {
	c.Helper()
	if ctx.Err() != nil {
		c.Skip("interrupted")
	}
}

// skipped is the error of a part, or of an interrupted check, that was skipped, and the reason.
type skipped string

func (s skipped) Error() string { return string(s) }

// part runs a part of the check as a test of its own.
func (c *check) part(name string, prove func() error) bool {
	return c.Run(name, func(t *testing.T) {
		err := prove()
		var reason skipped
		switch {
		case err == nil:
		case ctx.Err() != nil:
			t.Skip("interrupted")
		case errors.As(err, &reason):
			t.Skip(string(reason))
		default:
			c.failed = append(c.failed, name+": "+gist(err))
			t.Error(err)
		}
	})
}

// whatever returns a context for what is cleaned up also after Ctrl-C.
func (c *check) whatever() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.ctx), requestTimeout)
}

// count adds the results of tests that ran in another process as parts of the check.
func (c *check) count(cases []junit.Case) {
	for _, test := range cases {
		name := test.Name
		if test.ClassName != "" && test.ClassName != test.Name {
			name = test.ClassName + "." + test.Name
		}
		c.part(name, func() error { return resultOf(test) })
	}
}

func resultOf(test junit.Case) error {
	if test.Skipped != nil {
		return skipped(test.Skipped.Message)
	}
	if m := test.Problem(); m != nil {
		return errors.New(m.Message + "\n" + m.Text)
	}
	return nil
}

// fixture is something that several checks need. The first of them makes it. If that fails, the
// first check fails, and the others are skipped.
type fixture[T any] struct {
	name  string
	make  func(context.Context) (T, error)
	once  sync.Once
	value T
	err   error
}

func (f *fixture[T]) need(c *check) {
	c.Helper()
	first := false
	f.once.Do(func() {
		first = true
		f.value, f.err = f.make(c.ctx)
	})
	c.skipIfInterrupted()
	switch {
	case f.err == nil:
	case first:
		c.Fatal(f.err)
	default:
		c.Skipf("needs %s, which failed", f.name)
	}
}
