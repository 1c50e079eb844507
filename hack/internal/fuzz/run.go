package fuzz

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// Result is what came of fuzzing one target.
type Result struct {
	Target      Target
	Executions  int64
	Interesting int // inputs found that reach code which none before did
	Took        time.Duration
	// Failure says what failed, with the failing input and the command that runs it
	// again; empty where every execution passed.
	Failure string
	// Err says why the target could not be fuzzed.
	Err error
}

// Run fuzzes t for that many executions, with seeds, and inputs that earlier runs
// found, before them. An end before that is an error. Go keeps the interesting inputs of
// a guided run in its build cache, so a later run begins with what this one found.
func (t Target) Run(ctx context.Context, executions int64, step *progress.Step) Result {
	f := &follower{step: step, wanted: executions}
	step.Now("compiling %s", t.Package)
	start := time.Now()
	err := t.fuzz(ctx, executions, f)
	r := Result{Target: t, Executions: f.executions, Interesting: f.interesting, Took: time.Since(start)}
	switch {
	case ctx.Err() != nil:
		r.Err = ctx.Err()
	case err != nil && len(f.failure) > 0:
		r.Failure = f.explain(t)
	case err != nil:
		r.Err = err
	case f.executions < executions:
		r.Err = fmt.Errorf("go test ended after %s of %s executions", Grouped(f.executions), Grouped(executions))
	}
	return r
}

// fuzz runs the target until it fails or has had that many executions. Interesting
// inputs are not made smaller for longer than one execution: it serves only people who
// look at them, and can take a minute each.
func (t Target) fuzz(ctx context.Context, executions int64, f *follower) error {
	const noMinimizing = "fuzzminimizetime=1x"
	if !t.Module.Unguided {
		return run.Command(ctx, "go", "test", "-run=^$", "-fuzz=^"+t.Name+"$", fmt.Sprintf("-fuzztime=%dx", executions), "-"+noMinimizing, t.Package).
			Dir(t.Module.Dir).Env(t.Module.Env...).Log(f).Run()
	}
	work, err := os.MkdirTemp("", "podenv-fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	binary := filepath.Join(work, "fuzz.test")
	if err := run.Command(ctx, "go", "test", "-c", "-o", binary, t.Package).Dir(t.Module.Dir).Env(t.Module.Env...).Log(f).Run(); err != nil {
		return err
	}
	// As go test does, in the package's folder: a failing input is written there.
	return run.Command(ctx, binary, "-test.run=^$", "-test.fuzz=^"+t.Name+"$", fmt.Sprintf("-test.fuzztime=%dx", executions),
		"-test."+noMinimizing, "-test.fuzzcachedir="+filepath.Join(work, "cache")).
		Dir(t.Dir).Log(f).Run()
}

// explain says what failed and how to see it again.
func (f *follower) explain(t Target) string {
	var b strings.Builder
	pattern := t.Name
	switch {
	case f.input != "":
		fmt.Fprintf(&b, "failing input: %s\n", filepath.Join(t.Dir, f.input))
		pattern += "/" + filepath.Base(f.input)
	case f.seed != "":
		fmt.Fprintf(&b, "failing seed: %s\n", f.seed)
		pattern = f.seed
	}
	fmt.Fprintf(&b, "run it again: %s\n", t.again(pattern))
	for _, line := range f.failure {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return strings.TrimRight(b.String(), "\n")
}

// again is the command that runs the inputs that pattern selects.
func (t Target) again(pattern string) string {
	words := []string{"cd", run.Quote(t.Module.Dir), "&&"}
	for _, pair := range t.Module.Env {
		name, value, _ := strings.Cut(pair, "=")
		words = append(words, name+"="+run.Quote(value))
	}
	return strings.Join(append(words, "go", "test", run.Quote("-run=^"+pattern+"$"), t.Package), " ")
}

// Error returns what is wrong with the result, nil if nothing is.
func (r Result) Error() error {
	if r.Failure != "" {
		return errors.New(r.Failure)
	}
	return r.Err
}

// Case is the result as a test in a JUnit report.
func (r Result) Case() junit.Case {
	c := junit.Case{Name: r.Target.Name, ClassName: r.Target.Package, Seconds: r.Took.Seconds()}
	switch err := r.Error(); {
	case errors.Is(err, context.Canceled):
		c.Skipped = &junit.Message{Message: "interrupted"}
	case err != nil:
		message, _, _ := strings.Cut(err.Error(), "\n")
		c.Failure = &junit.Message{Message: message, Text: err.Error()}
	}
	return c
}
