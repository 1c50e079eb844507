package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/htmlreport"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
)

// TestProofs runs tests that stand in for those of hack/proof.
func TestProofs(t *testing.T) {
	a := &app{layout: layout.Layout{Root: t.TempDir()}}
	goTool(t, "../..", "build", "-o", a.proofTool("gotestsum"), "gotest.tools/gotestsum")
	module := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.test\n\ngo 1.22\n", "a_test.go": `package a
import ("flag"; "os"; "os/signal"; "syscall"; "testing")
func init() { flag.String("podenv.series", "", ""); flag.Bool("podenv.plain", false, "") }
func TestGood(t *testing.T) { t.Run("part", func(t *testing.T) {}) }
func TestLater(t *testing.T) { t.Skip("not now") }
func TestBad(t *testing.T) { t.Error("too bad") }
func TestSeries(t *testing.T) { for _, name := range []string{"v1.3", "v1.33", "tekton-v1.33", "v1.34"} { t.Run("series "+name, func(*testing.T) {}) } }
func TestExit(t *testing.T) { os.Exit(0) }
func TestLoud(t *testing.T) { for range 100_000 { t.Log("more than a pipe holds") } }
var status = 0
func TestInterrupted(t *testing.T) { status = 130 }
func TestMain(m *testing.M) { os.Exit(max(m.Run(), status)) }
var progress = os.Stderr // package testing gives os.Stderr to the results
func TestWaits(t *testing.T) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	progress.WriteString("waits")
	<-asked
	progress.WriteString(" and cleans up")
}
`} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goTool(t, module, "test", "-c", "-o", a.proofTool("proof.test"), ".")
	for name, test := range map[string]struct {
		run, last string
		counts    junit.Counts
		err       error
		says      string
	}{
		"what passes, and what is skipped": {"Good|Later", "2 passed, 0 failed, 1 skipped", junit.Counts{Passed: 2, Skipped: 1}, nil, ""},
		"what fails":                       {"Good|Bad", "2 passed, 1 failed, 0 skipped", junit.Counts{Passed: 2, Failed: 1}, errReported, "too bad"},
		"one series":                       {onlySeries("v1.3"), "2 passed, 0 failed, 0 skipped", junit.Counts{Passed: 2}, nil, ""},
		"tests that end too early":         {"Good|Exit", "2 passed, 1 failed, 0 skipped", junit.Counts{Passed: 2, Failed: 1}, errReported, "TestExit"},
		"tests that alone got a signal":    {"Good|Interrupted", "3 passed, 0 failed, 0 skipped", junit.Counts{Passed: 3}, errReported, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			a.out, a.errs = &out, &errs
			report := filepath.Join(t.TempDir(), "junit.xml")
			if err := a.runProofs(t.Context(), report, []string{"-test.run=" + test.run}); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; last != test.last || !strings.Contains(out.String(), test.says) || strings.Contains(out.String(), "not now") { // hundreds are skipped
				t.Errorf("want %q in it, nothing that was skipped, and the last line %q, of\n%s%s", test.says, test.last, out.String(), errs.String())
			}
			cases, err := junit.Read(report)
			if err != nil || junit.Count(cases) != test.counts {
				t.Errorf("the report has %v, %v, want %v", junit.Count(cases), err, test.counts)
			}
			for _, c := range cases {
				if c.Skipped != nil && !strings.Contains(c.Skipped.Message, "not now") {
					t.Errorf("the report does not say why %s was skipped: %q", c.Name, c.Skipped.Message)
				}
			}
			var page htmlreport.Run
			if err := page.AddGoTest(eventsOf(report)); err != nil || htmlreport.Count(page.Results).Failed != test.counts.Failed {
				t.Errorf("the page has %v (%v)", page.Results, err)
			}
		})
	}

	t.Run("on a full disk tests end, and fail", func(t *testing.T) {
		var out, errs bytes.Buffer
		a.out, a.errs = &out, &errs
		report := filepath.Join(t.TempDir(), "junit.xml")
		if err := os.Symlink("/dev/full", eventsOf(report)); err != nil {
			t.Fatal(err)
		}
		if err := a.runProofs(t.Context(), report, []string{"-test.run=Loud"}); !errors.Is(err, errReported) {
			t.Errorf("error %v", err)
		}
		if said := out.String() + errs.String(); !strings.Contains(said, "No space left on device") {
			t.Errorf("printed %q", said)
		}
	})
	t.Run("tests clean up after Ctrl-C", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out, errs bytes.Buffer
		a.out, a.errs = &out, writer(func(b []byte) {
			errs.Write(b)
			cancel()
		})
		if err := a.runProofs(ctx, filepath.Join(t.TempDir(), "junit.xml"), []string{"-test.run=Waits"}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
		if !strings.Contains(errs.String(), "waits and cleans up") {
			t.Errorf("printed %q", errs.String())
		}
	})
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

func goTool(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}
