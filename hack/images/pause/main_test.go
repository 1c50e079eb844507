package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

const timeout = 10 * time.Second

func TestPauseEndsWhenItIsTold(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			signals := make(chan os.Signal)
			ended := make(chan struct{})
			go func() { wait(signals); close(ended) }()
			// Unbuffered: once the second is taken, the first did not end it.
			for range 2 {
				select {
				case signals <- syscall.SIGCHLD:
				case <-ended:
					t.Fatal("pause ended because a child did")
				}
			}
			signals <- sig
			select {
			case <-ended:
			case <-time.After(timeout):
				t.Errorf("pause still waits %v after %v", timeout, sig)
			}
		})
	}
}

func TestPauseEndsIfItIsAskedWhatItIs(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"pause", "-v"}
	ended := make(chan struct{})
	go func() { main(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(timeout):
		t.Error("pause -v waits for a signal")
	}
}

func TestPauseReapsEveryChildThatHasEnded(t *testing.T) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD)
	defer signal.Stop(signals)
	ended := make(chan struct{})
	defer func() { signals <- syscall.SIGTERM; <-ended }()
	var pids []int
	for range 3 {
		p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, p.Pid)
	}
	go func() { wait(signals); close(ended) }()
	signals <- syscall.SIGCHLD // for those that ended before wait looked
	deadline := time.Now().Add(timeout)
	for _, pid := range pids {
		for syscall.Kill(pid, 0) == nil { // a zombie can still be signalled
			if time.Now().After(deadline) {
				t.Fatalf("child %d is still there after %v", pid, timeout)
			}
			time.Sleep(time.Millisecond)
		}
	}
}
