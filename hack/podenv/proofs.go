package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"podenv.dev/hack/internal/run"
)

// proofTool is the path of a program that compileProofs builds.
func (a *app) proofTool(name string) string { return filepath.Join(a.layout.Cache("proof"), name) }

// compileProofs builds the tests of hack/proof and gotestsum.
func (a *app) compileProofs(ctx context.Context) error {
	if _, err := a.pipeline(); err != nil { // the series does not exist
		return err
	}
	step := a.reporter().Step("compiling the proofs")
	for _, args := range [][]string{
		{"test", "-c", "-o", a.proofTool("proof.test"), "./hack/proof"},
		{"build", "-o", a.proofTool("gotestsum"), "gotest.tools/gotestsum"},
	} {
		if err := run.Command(ctx, "go", args...).Dir(a.layout.Root).Log(step.Log()).Run(); err != nil {
			return step.End(err)
		}
	}
	return step.End(nil)
}

// prove runs the tests of hack/proof that pattern selects, with flags. They show their
// progress themselves; gotestsum writes the JUnit report called name and the summary.
func (a *app) prove(ctx context.Context, pattern, name string, flags ...string) error {
	if err := a.compileProofs(ctx); err != nil {
		return err
	}
	return a.runProofs(ctx, filepath.Join(a.layout.JUnit(), name+".xml"), append(flags, "-test.run="+pattern))
}

// lastLine prints the last line, which CI reads.
const lastLine = `sh -c 'echo "$((TESTS_TOTAL - TESTS_FAILED - TESTS_SKIPPED)) passed, $TESTS_FAILED failed, $TESTS_SKIPPED skipped"'`

// cleanUpTimeout is how long the tests have after Ctrl-C to delete their clusters.
const cleanUpTimeout = 3 * time.Minute

// proofCommand prepares the tests. They have a process group of their own, so that Ctrl-C reaches
// only podenv, which sends them SIGTERM once.
func (a *app) proofCommand(ctx context.Context, flags []string) *exec.Cmd {
	flags = append(flags, "-podenv.series="+a.series, fmt.Sprintf("-podenv.plain=%t", a.plain))
	cmd := exec.CommandContext(ctx, a.proofTool("proof.test"), flags...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = cleanUpTimeout
	cmd.Dir, cmd.Stdout, cmd.Stderr = a.layout.Root, a.out, a.errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// eventsOf is the file with the events of the tests of a JUnit report.
func eventsOf(report string) string { return strings.TrimSuffix(report, ".xml") + ".json" }

// runProofs runs the tests. gotestsum reads their standard output; their progress goes to
// standard error.
func (a *app) runProofs(ctx context.Context, report string, flags []string) error {
	tests := a.proofCommand(ctx, append(flags, "-test.v=test2json", "-test.paniconexit0", "-test.timeout=0", "-test.parallel=8"))
	tests.Stdout = nil
	results, err := tests.StdoutPipe()
	if err != nil {
		return err
	}
	sum := exec.Command(a.proofTool("gotestsum"), "--raw-command", "--format=none", "--junitfile="+report, "--jsonfile="+eventsOf(report),
		"--post-run-command="+lastLine, "--", "go", "tool", "test2json", "-t", "-p", "podenv.dev/hack/proof")
	sum.Dir, sum.Stdin, sum.Stdout, sum.Stderr = a.layout.Root, results, a.out, a.errs
	sum.SysProcAttr = tests.SysProcAttr
	if err := sum.Start(); err != nil {
		return fmt.Errorf("starting gotestsum: %w", err)
	}
	if err := tests.Start(); err != nil {
		return fmt.Errorf("starting the proofs: %w", err)
	}
	// tests.Wait closes the pipe, so gotestsum reads it to its end first.
	err = errors.Join(sum.Wait(), tests.Wait())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return errors.Join(errReported, err)
	}
	return nil
}
