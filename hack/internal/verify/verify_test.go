package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/progress"
)

func passes(context.Context, *progress.Step) ([]junit.Case, error) { return nil, nil }

func TestRunCountsWholesAndParts(t *testing.T) {
	dir := t.TempDir()
	runner := &Runner{JUnit: dir}
	results, err := runner.Run(t.Context(), []Check{
		{Name: "format", Run: passes},
		{Name: "unit", Run: func(context.Context, *progress.Step) ([]junit.Case, error) {
			return []junit.Case{{Name: "a"}, {Name: "b", Failure: &junit.Message{Message: "no"}}, {Name: "c", Skipped: &junit.Message{Message: "why"}}}, nil
		}},
		{Name: "tree", Run: func(context.Context, *progress.Step) ([]junit.Case, error) { return nil, errors.New("first\nsecond") }},
		{Name: "needs tree", Needs: []string{"tree"}, Run: passes},
		{Name: "needs that", Needs: []string{"needs tree"}, Run: passes},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if sum, want := Summary(&out, results, dir), (junit.Counts{Passed: 2, Failed: 2, Skipped: 3}); sum != want {
		t.Errorf("sum %v, want %v", sum, want)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; last != "2 passed, 2 failed, 3 skipped" {
		t.Errorf("last line %q", last)
	}
	for _, want := range []string{"FAILED  tree: tree\n  first\n  second", "SKIPPED  needs that: needs that\n  needs needs tree, which failed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("summary lacks %q:\n%s", want, out.String())
		}
	}
	cases, err := junit.Read(filepath.Join(dir, "unit.xml"))
	if err != nil || junit.Count(cases) != (junit.Counts{Passed: 1, Failed: 1, Skipped: 1}) {
		t.Errorf("report has %v, %v", junit.Count(cases), err)
	}
}

func TestAnErrorBesideCasesIsCounted(t *testing.T) {
	results, err := (&Runner{JUnit: t.TempDir()}).Run(t.Context(), []Check{{Name: "suite",
		Run: func(context.Context, *progress.Step) ([]junit.Case, error) {
			return []junit.Case{{Name: "a"}}, errors.New("crashed before its last spec")
		}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := results[0].Counts(), (junit.Counts{Passed: 1, Failed: 1}); got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := (&Runner{JUnit: t.TempDir()}).Run(ctx, []Check{{Name: "long",
		Run: func(context.Context, *progress.Step) ([]junit.Case, error) { cancel(); return nil, ctx.Err() }}, {Name: "never", Run: func(context.Context, *progress.Step) ([]junit.Case, error) {
		t.Error("ran after the context ended")
		return nil, nil
	}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestLanesRunBesideEachOther(t *testing.T) {
	one, other := make(chan struct{}), make(chan struct{})
	meets := func(mine, theirs chan struct{}) func(context.Context, *progress.Step) ([]junit.Case, error) {
		return func(ctx context.Context, _ *progress.Step) ([]junit.Case, error) {
			close(mine)
			select {
			case <-theirs:
				return nil, nil
			case <-time.After(10 * time.Second):
				return nil, errors.New("nothing ran beside it")
			}
		}
	}
	results, err := (&Runner{JUnit: t.TempDir()}).Run(t.Context(), []Check{
		{Name: "one", Run: meets(one, other)},
		{Name: "other", Lane: "second", Run: meets(other, one)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Counts().Failed > 0 {
			t.Errorf("%s: %s", r.Check.Name, r.Cases[0].Failure.Text)
		}
	}
}

func TestChecksOfALaneRunInOrderAndNeedsHoldAcrossLanes(t *testing.T) {
	var mu sync.Mutex
	var order []string
	says := func(name string, err error) Check {
		return Check{Name: name, Run: func(context.Context, *progress.Step) ([]junit.Case, error) {
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return nil, err
		}}
	}
	in := func(c Check, lane string, needs ...string) Check {
		c.Lane, c.Needs = lane, needs
		return c
	}
	results, err := (&Runner{JUnit: t.TempDir()}).Run(t.Context(), []Check{
		says("setup", nil),
		says("build", errors.New("no")),
		in(says("needs both", nil), "second", "setup", "build"),
		in(says("needs setup", nil), "second", "setup", "chosen by nobody"),
		says("last", nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Check.Name)
	}
	if want := []string{"setup", "build", "needs both", "needs setup", "last"}; !slices.Equal(names, want) {
		t.Errorf("results of %q, want %q", names, want)
	}
	if why := results[2].Reason; why != "needs build, which failed" {
		t.Errorf("a check whose need failed in another lane: %q", why)
	}
	mine := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return name == "needs setup" })
	if want := []string{"setup", "build", "last"}; !slices.Equal(mine, want) {
		t.Errorf("the first lane ran %q, want %q", mine, want)
	}
	if slices.Index(order, "needs setup") < slices.Index(order, "setup") {
		t.Errorf("%q: one ran before what it needs", order)
	}
}

func TestFailuresAreNamedAtOnce(t *testing.T) {
	var out bytes.Buffer
	var cases []junit.Case
	for i := range maxShown + 1 {
		cases = append(cases, junit.Case{Name: fmt.Sprintf("spec %d", i), Failure: &junit.Message{Message: "want 1\ngot 2"}})
	}
	r := &Runner{Reporter: progress.New(&out, false, 80, t.TempDir()), JUnit: t.TempDir()}
	if _, err := r.Run(t.Context(), []Check{{Name: "suite", Run: func(context.Context, *progress.Step) ([]junit.Case, error) { return cases, nil }}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FAIL  suite", "        spec 0: want 1 got 2\n", "        spec 9: want 1 got 2\n", "and more, in the summary"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in what the run printed:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "spec 10") {
		t.Errorf("more than %d failures:\n%s", maxShown, out.String())
	}
}
