package proof

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"podenv.dev/hack/internal/layout"
)

const (
	// interrupted is podenv's exit status after Ctrl-C.
	interrupted = 130
	// interruptTimeout limits how long podenv may take to reach a step, and to end. On a busy host the first
	// tree of a clone takes more than ten minutes: its generators compile and run.
	interruptTimeout = 40 * time.Minute
)

// interruptedName is the name of the cluster that is interrupted.
var interruptedName = layout.MustFind().UniqueName("podenv-interrupted")

// upGoesOnAfterInterrupts runs podenv up in a fresh clone and interrupts each step, early and late.
// Each time podenv must say how to go on, and leave no process and no node. The last run is not
// interrupted, and must succeed with what the others left. Then the clone runs docs/ci.md.
func upGoesOnAfterInterrupts(c *check) error {
	t, dir := c.T, filepath.Join(repo.Output(), "interrupted")
	if err := os.RemoveAll(dir); err != nil { // what a killed run left
		return err
	}
	t.Cleanup(func() { os.RemoveAll(dir); os.Remove(dir + ".kubeconfig") })
	mustRun(t, exec.CommandContext(ctx, "git", "clone", "--quiet", repo.Root, dir))
	build := exec.CommandContext(ctx, "go", "build", "-o", "_output/bin/podenv", "./hack/podenv")
	build.Dir = dir
	mustRun(t, build)
	down := func() { mustRun(t, podenvIn(context.WithoutCancel(ctx), dir, "down", "--name", interruptedName)) }
	down() // what a killed run left
	t.Cleanup(down)

	for _, at := range []struct {
		step  string // the line that podenv prints when the step begins ends with it
		after []time.Duration
	}{
		{"container engine", []time.Duration{0}},
		{"root file system", []time.Duration{0}},
		{"test images", []time.Duration{time.Second}},
		{"source tree", []time.Duration{time.Second, 10 * time.Second, 25 * time.Second}},
		{"support images", []time.Duration{0}},
		{"go build", []time.Duration{time.Second, 20 * time.Second}},
		{"component images", []time.Duration{0, time.Second}},
		{"node image", []time.Duration{0, 5 * time.Second}},
		{"cluster " + interruptedName, []time.Duration{0, 2 * time.Second, 10 * time.Second, 20 * time.Second}},
		{"examples", []time.Duration{0, time.Second}},
	} {
		for _, after := range at.after {
			t.Run(fmt.Sprintf("%s after %v", at.step, after), func(t *testing.T) {
				if ctx.Err() != nil {
					t.Fatal(ctx.Err())
				}
				interruptUp(ctx, t, dir, at.step, after)
				if strings.HasPrefix(at.step, "cluster ") {
					checkNoNodes(t)
				}
			})
		}
	}
	t.Run("nobody interrupts", func(t *testing.T) {
		for _, examples := range []string{"ok    examples", "The examples have run"} { // the second time nothing has changed
			out, err := podenvIn(ctx, dir, "up", "--name", interruptedName).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "The cluster "+interruptedName+" runs") || !strings.Contains(string(out), examples) {
				t.Errorf("%v\n%s", err, out)
			}
		}
	})
	t.Run("the workflow of docs/ci.md", func(t *testing.T) { runWorkflow(t, dir, interruptedName) })
	down()
	checkNoNodes(t)
	return nil
}

// podenvIn prepares the podenv of the repository dir, in its own process group, as a shell starts
// it, and with its own kubeconfig.
func podenvIn(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "_output/bin/podenv"), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SERIES="+steps.Series.Name, "KUBECONFIG="+dir+".kubeconfig")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	return cmd
}

func mustRun(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// interruptUp runs podenv up, and sends the signal of Ctrl-C some time after a step has begun.
func interruptUp(ctx context.Context, t *testing.T, dir, step string, after time.Duration) {
	t.Helper()
	cmd := podenvIn(ctx, dir, "up", "--name", interruptedName)
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tooLong := time.AfterFunc(interruptTimeout, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) //nolint:errcheck // it has ended
	defer tooLong.Stop()
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		writer.Close()
	}()

	var printed strings.Builder
	pressed := make(chan time.Time, 1)
	var timer *time.Timer
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		fmt.Fprintln(&printed, lines.Text())
		if timer == nil && lines.Text() == "  ...   "+step {
			timer = time.AfterFunc(after, func() {
				pressed <- time.Now()
				syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) //nolint:errcheck // the exit status is checked below
			})
		}
	}
	err := <-ended
	var exit *exec.ExitError
	switch {
	case timer == nil:
		t.Fatalf("the step %q has not begun; podenv ended with %v and\n%s", step, err, printed.String())
	case timer.Stop():
		t.Fatalf("podenv ended before Ctrl-C:\n%s", printed.String())
	case !errors.As(err, &exit) || exit.ExitCode() != interrupted:
		t.Fatalf("podenv ended with %v, want exit status %d:\n%s", err, interrupted, printed.String())
	case !strings.HasSuffix(strings.TrimSpace(printed.String()), "podenv: interrupted; the same command does what is not done yet"):
		t.Errorf("podenv does not say how to go on:\n%s", printed.String())
	}
	t.Logf("ended %v after Ctrl-C", time.Since(<-pressed).Round(time.Millisecond))
	for _, left := range processesIn(dir) {
		t.Errorf("still runs: %s", left)
	}
}

// processesIn lists the processes whose working directory or executable is in dir. One without a command line
// has given its memory back: it was killed, and the kernel is about to remove it.
func processesIn(dir string) (found []string) {
	processes, _ := filepath.Glob("/proc/[0-9]*") // Glob fails only on a malformed pattern
	for _, proc := range processes {
		cwd, _ := os.Readlink(filepath.Join(proc, "cwd"))
		exe, _ := os.Readlink(filepath.Join(proc, "exe"))
		if strings.HasPrefix(cwd, dir) || strings.HasPrefix(exe, dir) {
			command, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
			if len(command) == 0 {
				continue
			}
			found = append(found, filepath.Base(proc)+": "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

func checkNoNodes(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(context.Background(), "docker", "ps", "--all", "--format", "{{.Names}}",
		"--filter", "label=io.x-k8s.kind.cluster="+interruptedName).Output()
	if err != nil || len(out) > 0 {
		t.Errorf("nodes left: %q, error %v", out, err)
	}
}
