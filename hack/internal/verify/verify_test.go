package verify

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

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
