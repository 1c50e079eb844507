package progress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlainStepsPrintOneLineAtStartAndEnd(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, false, 80, t.TempDir())
	s := r.Step("source tree")
	s.Now("copying")
	if err := s.End(nil); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "source tree") || !strings.HasPrefix(lines[1], "  ok") {
		t.Errorf("printed %q", lines)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("plain output has escape sequences")
	}
}

func TestACancelledStepHasNotFailed(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, false, 80, t.TempDir())
	if err := r.Step("go build").End(fmt.Errorf("go build: %w", context.Canceled)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(out.String(), "  stop  go build") || strings.Contains(out.String(), "FAIL") {
		t.Errorf("printed %q", out.String())
	}
}

func TestLiveStepsLeaveOnlyFinishedLines(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, true, 40, t.TempDir())
	a, b := r.Step("a"), r.Step("b")
	a.Now("%s", strings.Repeat("long ", 50))
	if err := errors.Join(a.End(nil), b.End(nil)); err != nil {
		t.Fatal(err)
	}
	screen := render(out.String())
	if len(screen) != 2 {
		t.Fatalf("screen shows %q, want the two finished lines", screen)
	}
	for i, name := range []string{"a", "b"} {
		if !strings.Contains(screen[i], "ok    "+name) {
			t.Errorf("line %d is %q", i, screen[i])
		}
	}
}

// render plays the two escape sequences that the Reporter uses.
func render(s string) []string {
	var screen []string
	for s != "" {
		if strings.HasPrefix(s, "\x1b[") {
			var up int
			end := strings.Index(s, "A\x1b[J")
			fmt.Sscanf(s[2:end], "%d", &up)
			screen = screen[:len(screen)-up]
			s = s[end+len("A\x1b[J"):]
			continue
		}
		line, rest, _ := strings.Cut(s, "\n")
		screen, s = append(screen, line), rest
	}
	return screen
}

func TestFailureNamesTheFullLog(t *testing.T) {
	logs := t.TempDir()
	var out bytes.Buffer
	s := New(&out, false, 80, logs).Step("go build")
	fmt.Fprintln(s.Log(), "every line")
	boom := errors.New("boom")
	err := s.End(boom)
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), filepath.Join(logs, "go-build.log")) {
		t.Errorf("error is %v", err)
	}
	log, readErr := os.ReadFile(filepath.Join(logs, "go-build.log"))
	if readErr != nil || !strings.Contains(string(log), "every line") || !strings.Contains(string(log), "boom") {
		t.Errorf("log is %q, %v", log, readErr)
	}
	if !strings.Contains(out.String(), "FAIL  go build") {
		t.Errorf("printed %q", out.String())
	}
}

func TestCachedStepSaysWhatItFound(t *testing.T) {
	var out bytes.Buffer
	s := New(&out, false, 80, t.TempDir()).Step("node image")
	s.Cached("unchanged since abc")
	s.End(nil)
	if !strings.Contains(out.String(), "same  node image (unchanged since abc)") {
		t.Errorf("printed %q", out.String())
	}
}

func TestNilStepDoesNothing(t *testing.T) {
	var r *Reporter
	s := r.Step("x")
	s.Now("y")
	s.Cached("z")
	fmt.Fprintln(s.Log(), "nothing")
	boom := errors.New("boom")
	if got := s.End(boom); got != boom {
		t.Errorf("End gave %v", got)
	}
}

func TestStepsOfOneNameAtTheSameTimeHaveLogsOfTheirOwn(t *testing.T) {
	logs := t.TempDir()
	first := New(new(bytes.Buffer), false, 80, logs).Step("go build")
	second := New(new(bytes.Buffer), false, 80, logs).Step("go build") // as another process does
	fmt.Fprintln(first.Log(), "first")
	fmt.Fprintln(second.Log(), "second")
	for step, want := range map[*Step]string{first: "go-build.log", second: "go-build.2.log"} {
		if got := step.LogPath(); got != filepath.Join(logs, want) {
			t.Errorf("the log is %s, want %s", got, want)
		}
	}
	log, err := os.ReadFile(first.LogPath())
	if err != nil || string(log) != "first\n" {
		t.Errorf("the first log is %q, %v", log, err)
	}
	if err := errors.Join(first.End(nil), second.End(nil)); err != nil {
		t.Fatal(err)
	}
	third := New(new(bytes.Buffer), false, 80, logs).Step("go build")
	defer third.End(nil) //nolint:errcheck // a step that ends well returns no error
	if third.LogPath() != filepath.Join(logs, "go-build.log") {
		t.Errorf("the log of a step after these is %s", third.LogPath())
	}
}
