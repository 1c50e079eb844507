package verify

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
)

func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.test\n\ngo 1.21\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// goTest runs go test in dir with the tool of this repository.
func goTest(t *testing.T, dir string) ([]junit.Case, error) {
	t.Helper()
	l, err := layout.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	return GoTest{Layout: layout.Layout{Root: l.Root}, Name: "test-" + filepath.Base(dir), Dir: dir, Env: []string{"GOFLAGS=-mod=mod", "GOWORK=off"}, Flags: []string{"./..."}}.Run(t.Context(), nil)
}

func TestGoTestCountsPassedFailedAndSkipped(t *testing.T) {
	cases, err := goTest(t, module(t, map[string]string{"a_test.go": `package a
import "testing"
func TestGood(t *testing.T) {}
func TestBad(t *testing.T) { t.Error("bad") }
func TestLater(t *testing.T) { t.Skip("later") }
`}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := junit.Count(cases), (junit.Counts{Passed: 1, Failed: 1, Skipped: 1}); got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
}

func TestGoTestFailsWhereNothingWasProven(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		noTest bool
	}{
		"no tests":         {"package a\n", true},
		"does not compile": {"package a\nimport \"testing\"\nfunc TestX(t *testing.T) { undefined() }\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			cases, err := goTest(t, module(t, map[string]string{"a_test.go": test.source}))
			if err == nil && junit.Count(cases).Failed == 0 || errors.Is(err, errNoTest) != test.noTest {
				t.Errorf("got %v and the error %v", cases, err)
			}
		})
	}
}

func TestATestThatPassesWhenRunAgainHasPassed(t *testing.T) {
	cases := lastRuns([]junit.Case{
		{ClassName: "p", Name: "TestA", Failure: &junit.Message{}},
		{ClassName: "q", Name: "TestA", Failure: &junit.Message{}},
		{ClassName: "p", Name: "TestA"},
	})
	if got, want := junit.Count(cases), (junit.Counts{Passed: 1, Failed: 1}); got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
}

func TestIsShellKnowsScriptsByTheirFirstLine(t *testing.T) {
	for text, want := range map[string]bool{
		"#!/bin/sh\n": true, "#!/usr/bin/env bash\nset -e\n": true, "#!/usr/bin/python3\n": false, "package main\n": false, "": false,
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := isShell(path); got != want {
			t.Errorf("isShell(%q) = %t", strings.TrimSpace(text), got)
		}
	}
}
