package fuzz

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/junit"
)

const targets = `package a

import "testing"

func FuzzGood(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) {})
}

func FuzzBad(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) {
		if n != 1 {
			t.Error("not one")
		}
	})
}

func TestFuzzy(t *testing.T) {}
`

// module is a module with the files given, in a folder of its own.
func module(t *testing.T, files map[string]string) Module {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.test\n\ngo 1.21\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Module{Dir: dir, Env: []string{"GOWORK=off", "GOFLAGS=-mod=mod"}}
}

func TestTargetsAreFoundAndRun(t *testing.T) {
	m := module(t, map[string]string{
		"a/a_test.go": targets,
		"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestNothing(t *testing.T) {}\n",
		"c/c.go":      "package c\n",
	})
	found, err := m.Targets(t.Context(), []string{"./..."}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, target := range found {
		names = append(names, target.String())
	}
	if got, want := strings.Join(names, " "), "example.test/a.FuzzGood example.test/a.FuzzBad"; got != want {
		t.Fatalf("found %q, want %q", got, want)
	}

	for _, unguided := range []bool{false, true} {
		good, bad := found[0], found[1]
		good.Module.Unguided, bad.Module.Unguided = unguided, unguided

		r := good.Run(t.Context(), 500, nil)
		if err := r.Error(); err != nil || r.Executions < 500 {
			t.Errorf("the good one, unguided %t: %d executions, %v; want 500", unguided, r.Executions, err)
		}
		r = bad.Run(t.Context(), 100_000, nil)
		line, _, _ := strings.Cut(r.Failure, "\n")
		input, ok := strings.CutPrefix(line, "failing input: ")
		if !ok {
			t.Fatalf("the bad one, unguided %t, names no failing input: %q, %v", unguided, r.Failure, r.Err)
		}
		// Removed, or it would be the next run's failing seed.
		if err := os.Remove(input); err != nil {
			t.Errorf("the failing input, unguided %t: %v", unguided, err)
		}
	}
}

func TestATargetThatDoesNotRunIsAnError(t *testing.T) {
	m := module(t, map[string]string{"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc FuzzBroken(f *testing.F) { undefined() }\n"})
	if _, err := m.Targets(t.Context(), []string{"./..."}, nil); err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Errorf("listing a package that does not compile: %v", err)
	}
	r := Target{Module: m, Package: "example.test/a", Name: "FuzzBroken"}.Run(t.Context(), 10, nil)
	if r.Err == nil || r.Case().Failure == nil {
		t.Errorf("running it: %v", r.Err)
	}
}

func TestAnInterruptedTargetIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := module(t, map[string]string{"a/a_test.go": targets})
	r := Target{Module: m, Package: "example.test/a", Name: "FuzzGood"}.Run(ctx, 10, nil)
	if !errors.Is(r.Err, context.Canceled) {
		t.Fatalf("got %v", r.Err)
	}
	if counts := junit.Count([]junit.Case{r.Case()}); counts != (junit.Counts{Skipped: 1}) {
		t.Errorf("counted %v", counts)
	}
}
