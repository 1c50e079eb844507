package proof

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

var sample = flag.String("podenv.sample", "", "run the sample checks of TestChecks")

// TestSample has a check for each way in which a check can end.
func TestSample(t *testing.T) {
	if *sample == "" {
		t.Skip("without -podenv.sample: TestChecks runs it")
	}
	l := newLane(t)
	nothing := func(*check) {}
	broken := &fixture[int]{name: "the fixture", make: func(context.Context) (int, error) { return 0, errors.New("no fixture") }}
	made := 0
	prepared := &fixture[int]{name: "what is prepared", make: func(context.Context) (int, error) { made++; return made, nil }}
	interruption := func(c *check) error {
		// It still cleans up when more signals follow the first one.
		for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
			for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGPIPE} {
				syscall.Kill(os.Getpid(), signal) //nolint:errcheck // the test fails then
				<-c.ctx.Done()
			}
		}
		return fmt.Errorf("stopping: %w", c.ctx.Err())
	}
	l.check("is interrupted alone", "unit", nothing, interruption)
	l.prepare("is prepared", "lint", prepared.need)
	l.prepare("of another group, is prepared", "upstream", func(c *check) { c.Error("was not asked for") })
	l.check("finds it prepared", "lint", nothing, func(c *check) error {
		if made != 1 {
			return fmt.Errorf("it was made %d times", made)
		}
		return nil
	})
	l.check("passes", "lint", nothing, func(c *check) error {
		c.part("a part", func() error { return nil })
		c.part("a skipped part", func() error { return skipped("why not") })
		return nil
	})
	l.check("is skipped", "lint", nothing, func(*check) error { return skipped("not on this series") })
	l.check("of another group", "upstream", nothing, func(*check) error { return errors.New("was not asked for") })
	l.check("has a failed part", "lint", nothing, func(c *check) error {
		c.part("bad part", func() error { return errors.New("one\ntwo") })
		return nil
	})
	l.check("fails", "lint", nothing, func(*check) error { return errors.New("as a whole") })
	l.check("fills the disk", "lint", nothing, func(*check) error { return syscall.ENOSPC })
	l.check("has a skipped test", "lint", nothing, func(c *check) error {
		dir := c.TempDir()
		writeModule(c.T, dir, "package a\nimport \"testing\"\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { t.Skip(\"without a flag\") }\n")
		return c.countGoTest(dir, moduleEnv, "./...")
	})
	l.check("makes the fixture", "lint", broken.need, func(*check) error { return nil })
	l.check("needs the fixture, too", "lint", broken.need, func(*check) error { return nil })
	l.check("is interrupted", "lint", nothing, interruption)
	l.check("comes after", "lint", nothing, func(*check) error { return errors.New("ran after Ctrl-C") })
}

func TestChecks(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v=test2json", "-test.run=^TestSample$", "-podenv.sample=yes", "-podenv.series=v1.33", "-podenv.only=lint")
	var results, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &results, &progress
	if err := cmd.Run(); err == nil {
		t.Error("failed checks, and no error")
	}
	for _, want := range []string{
		"--- PASS: TestSample/is_prepared", "--- PASS: TestSample/finds_it_prepared", "--- PASS: TestSample/passes ", "--- PASS: TestSample/passes/a_part", "--- SKIP: TestSample/passes/a_skipped_part", "why not",
		"--- SKIP: TestSample/is_skipped", "not on this series",
		"--- FAIL: TestSample/has_a_failed_part/bad_part", "--- FAIL: TestSample/has_a_failed_part ",
		"--- FAIL: TestSample/fails", "--- FAIL: TestSample/fills_the_disk", "podenv clean",
		"--- PASS: TestSample/has_a_skipped_test/example.test.TestA", "--- FAIL: TestSample/has_a_skipped_test/example.test.TestB", "must run, and was skipped: a_test.go:4: without a flag",
		"--- FAIL: TestSample/makes_the_fixture", "no fixture",
		"--- SKIP: TestSample/needs_the_fixture,_too", "needs the fixture, which failed",
		"--- SKIP: TestSample/is_interrupted", "--- SKIP: TestSample/comes_after",
	} {
		if !strings.Contains(results.String(), want) {
			t.Errorf("the results lack %q:\n%s", want, results.String())
		}
	}
	for _, want := range []string{
		"  ok    passes", "  same  is skipped (skipped: not on this series)", "  FAIL  has a failed part", "        bad part: one two\n", "        full log: ", "  FAIL  fails", "        as a whole", "  stop  is interrupted",
	} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("what was shown lacks %q:\n%s", want, progress.String())
		}
	}
	if strings.Contains(results.String()+progress.String(), "another") {
		t.Error("a check of another group ran")
	}
}

func TestNoSeriesVerifiedIsNoSuccess(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSeries$/^series_v1.99$", "-podenv.series=v1.33", "-podenv.only=series")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "no series was verified") {
		t.Errorf("error %v:\n%s", err, out)
	}
}

func TestInterruptedRunIsNoSuccess(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSample$", "-podenv.sample=yes", "-podenv.series=v1.33", "-podenv.only=unit")
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != interrupted {
		t.Errorf("status %d (%v), want %d:\n%s", got, err, interrupted, out)
	}
}
