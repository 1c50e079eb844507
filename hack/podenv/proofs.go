package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// proofs runs the tests of hack/proof.
type proofs struct {
	layout    layout.Layout
	out, errs io.Writer
	flags     []string // of every run
}

func (p *proofs) tool(name string) string { return filepath.Join(p.layout.Cache("proof"), name) }

// compile makes the tests and gotestsum; the Go cache knows what has not changed.
func (p *proofs) compile(ctx context.Context, step *progress.Step) error {
	for _, args := range [][]string{
		{"test", "-c", "-o", p.tool("proof.test"), "./hack/proof"},
		{"build", "-o", p.tool("gotestsum"), "gotest.tools/gotestsum"},
	} {
		if err := run.Command(ctx, "go", args...).Dir(p.layout.Root).Log(step.Log()).Run(); err != nil {
			return err
		}
	}
	return nil
}

// lastLine is what CI reads.
const lastLine = `sh -c 'echo "$((TESTS_TOTAL - TESTS_FAILED - TESTS_SKIPPED)) passed, $TESTS_FAILED failed, $TESTS_SKIPPED skipped"'`

// cleanUp is how long the tests have after Ctrl-C to delete their clusters.
const cleanUp = 3 * time.Minute

// command prepares the tests. Ctrl-C is for podenv, which passes it on to them once.
func (p *proofs) command(ctx context.Context, flags []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.tool("proof.test"), append(flags, p.flags...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = cleanUp
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.layout.Root, p.out, p.errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run runs the tests and has gotestsum read what they print on standard output. Their progress
// goes to standard error.
func (p *proofs) run(ctx context.Context, report string, flags []string) error {
	tests := p.command(ctx, append(flags, "-test.v=test2json", "-test.paniconexit0", "-test.timeout=0", "-test.parallel=8"))
	tests.Stdout = nil
	results, err := tests.StdoutPipe()
	if err != nil {
		return err
	}
	sum := exec.Command(p.tool("gotestsum"), "--raw-command", "--format=none", "--junitfile="+report,
		"--post-run-command="+lastLine, "--", "go", "tool", "test2json", "-t", "-p", "podenv.dev/hack/proof")
	sum.Dir, sum.Stdin, sum.Stdout, sum.Stderr = p.layout.Root, results, p.out, p.errs
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
