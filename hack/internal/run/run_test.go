package run

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestOutputReturnsStandardOutputOnly(t *testing.T) {
	out, err := Command(t.Context(), "sh", "-c", "echo noise >&2; echo value").Output()
	if err != nil || out != "value" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestGoCollectsLessGarbageUnlessTheUserDecides(t *testing.T) {
	for _, test := range []struct{ name, user, want string }{
		{"go", "", LessGC[0]}, {"go", "50", "GOGC=50"}, {"git", "", ""},
	} {
		t.Setenv("GOGC", test.user)
		got := ""
		for _, pair := range Command(t.Context(), test.name).cmd.Environ() {
			if strings.HasPrefix(pair, "GOGC=") && pair != "GOGC=" {
				got = pair
			}
		}
		if got != test.want {
			t.Errorf("%s, with GOGC=%s: %q, want %q", test.name, test.user, got, test.want)
		}
	}
}

func TestErrorCarriesThePastableCommandAndItsLastLines(t *testing.T) {
	err := Command(t.Context(), "sh", "-c", "for i in $(seq 40); do echo line $i; done; exit 3").Dir("/").Run()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %T", err)
	}
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("error %v, want the exit status 3 in its chain", err)
	}
	if want := `sh -c 'for i in $(seq 40); do echo line $i; done; exit 3'`; e.Line != want {
		t.Errorf("line %s", e.Line)
	}
	if lines := strings.Split(e.Tail, "\n"); len(lines) != tailLines || lines[tailLines-1] != "line 40" {
		t.Errorf("tail %q", lines)
	}
	if !strings.Contains(err.Error(), "(in /)") {
		t.Errorf("message %q does not say where", err)
	}
}

func TestErrorShortensALongCommand(t *testing.T) {
	err := Command(t.Context(), "sh", "-c", "echo broken >&2; exit 3", "-ldflags="+strings.Repeat("x", 2000)).Run()
	if err == nil || !strings.Contains(err.Error(), "…: exit status 3") || !strings.HasSuffix(err.Error(), "broken") || len(err.Error()) > 400 {
		t.Errorf("error %v", err)
	}
}

func TestLogGetsTheCommandAndBothStreams(t *testing.T) {
	var log bytes.Buffer
	if _, err := Command(t.Context(), "sh", "-c", "echo out; echo err >&2").Log(&log).Output(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+ sh -c", "out\n", "err\n"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log %q lacks %q", log.String(), want)
		}
	}
}

func TestErrorSaysThatTheLogCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, script := range []string{"while echo out; do sleep 0.1; done", "echo out; exit 3", "exit 0"} {
		if err := Command(t.Context(), "sh", "-c", script).Log(full).Run(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: error %v", script, err)
		}
	}
}

func TestEnvAddsToTheInheritedEnvironment(t *testing.T) {
	t.Setenv("PODENV_INHERITED", "a")
	out, err := Command(t.Context(), "sh", "-c", "echo $PODENV_INHERITED$PODENV_ADDED").Env("PODENV_ADDED=b").Output()
	if err != nil || out != "ab" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestCancelEndsTheWholeProcessGroup(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	out, err := Command(ctx, "sh", "-c", "sleep 60 & echo $!; wait").Output()
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "terminated") {
		t.Fatalf("error %v, want the context's and the signal", err)
	}
	var pid int
	for _, c := range strings.TrimSpace(out) {
		pid = pid*10 + int(c-'0')
	}
	for deadline := time.Now().Add(5 * time.Second); syscall.Kill(pid, 0) == nil; {
		if time.Now().After(deadline) {
			t.Fatalf("child %d still runs", pid)
		}
	}
}

func TestInterruptibleCommandCleansUp(t *testing.T) {
	for name, test := range map[string]struct {
		script, want string
		gracePeriod  time.Duration
	}{
		"in its time":   {"trap 'echo cleaned; exit 3' INT; echo started; while :; do sleep 0.1; done", "started\ncleaned", time.Minute},
		"or is stopped": {"trap '' INT TERM; echo started; while :; do sleep 0.1; done", "started", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			begin := time.Now()
			started := writer(func([]byte) { cancel() })
			out, err := Command(ctx, "sh", "-c", test.script).Interruptible(test.gracePeriod).Log(started).Output()
			if out != test.want || !errors.Is(err, context.Canceled) {
				t.Errorf("printed %q, error %v; want %q", out, err, test.want)
			}
			if took := time.Since(begin); took >= gracePeriod {
				t.Errorf("it took %v", took)
			}
		})
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	if !bytes.HasPrefix(b, []byte("+ ")) { // the command line
		w(b)
	}
	return len(b), nil
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"": "''", "a-b/c.d:e=f": "a-b/c.d:e=f", "it's": `'it'\''s'`, "$x": "'$x'"} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestLinesAwaitsTheEndOfALine(t *testing.T) {
	var lines []string
	w := Lines(func(line string) { lines = append(lines, line) })
	for _, piece := range []string{"", "on", "e\ntwo\n\nthr", "ee", "\nfour"} {
		if n, err := io.WriteString(w, piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := []string{"one", "two", "", "three"}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}
