package interrupt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const envWork = "PODENV_INTERRUPT_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(envWork) == "" {
		os.Exit(m.Run())
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work writes to a broken pipe, which must not end it. Then it prints until its context ends.
// The test reads its standard output until then.
func work() error {
	ctx, stop := Context(context.Background())
	if os.Getenv(envWork) == "once" {
		context.AfterFunc(ctx, stop)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	if _, err := w.WriteString("unread"); err == nil {
		return errors.New("the pipe is not broken")
	}
	select {
	case <-ctx.Done():
		return errors.New("a pipe that broke ended the work")
	case <-time.After(500 * time.Millisecond):
	}
	fmt.Println("at work")
	for end := time.After(time.Minute); ; {
		select {
		case <-ctx.Done():
			fmt.Println("cleaning up")
			fmt.Fprintln(os.Stderr, "cleaned up")
			if os.Getenv(envWork) == "once" {
				<-end // until the next Ctrl-C
			}
			return nil
		case <-end:
			return errors.New("nothing ended the work")
		case <-time.After(10 * time.Millisecond):
			fmt.Println("at work")
		}
	}
}

func TestWorkEndsAndCleansUp(t *testing.T) {
	for what, end := range map[string]func(work *exec.Cmd, output *os.File) error{
		"with Ctrl-C":                           func(work *exec.Cmd, _ *os.File) error { return work.Process.Signal(os.Interrupt) },
		"with SIGTERM":                          func(work *exec.Cmd, _ *os.File) error { return work.Process.Signal(syscall.SIGTERM) },
		"once nobody reads its standard output": func(_ *exec.Cmd, output *os.File) error { return output.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			work := exec.CommandContext(t.Context(), os.Args[0])
			work.Env = append(os.Environ(), envWork+"=yes")
			var says strings.Builder
			work.Stdout, work.Stderr = w, &says
			if err := work.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if _, err = r.Read(make([]byte, 1)); err == nil { // it is at work
				err = end(work, r)
			}
			if err = errors.Join(err, work.Wait()); err != nil || says.String() != "cleaned up\n" {
				t.Errorf("%v: %s", err, says.String())
			}
		})
	}
}

func TestAfterStopTheNextCtrlCEndsTheProcess(t *testing.T) {
	work := exec.CommandContext(t.Context(), os.Args[0])
	work.Env = append(os.Environ(), envWork+"=once")
	stdout, err := work.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := work.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := work.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = stdout.Read(make([]byte, 1)) // it is at work
	stdout.Close()                        // as when Ctrl-C ends the reader too
	line, err2 := bufio.NewReader(stderr).ReadString('\n')
	if err := errors.Join(err, err2); err != nil || line != "cleaned up\n" {
		t.Fatalf("%v: %s", err, line)
	}
	ended := make(chan error)
	go func() { ended <- work.Wait() }()
	for {
		select {
		case err := <-ended:
			if got := work.ProcessState.Sys().(syscall.WaitStatus); got.Signal() != os.Interrupt {
				t.Errorf("it ended by itself: %v", err)
			}
			return
		case <-time.After(10 * time.Millisecond): // stop may take a moment
			work.Process.Signal(os.Interrupt) //nolint:errcheck // it has ended
		}
	}
}
