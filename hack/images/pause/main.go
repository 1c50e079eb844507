// Command pause holds a pod's namespaces open until it gets a signal to end. As process 1 of a pod
// with a shared process namespace, it also reaps orphaned processes. With -v it says what it is, and
// ends: that is the Job with which `kubeadm upgrade` checks that a cluster is well.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "-v" {
		os.Stdout.WriteString("podenv's pause\n") //nolint:errcheck // nobody needs it; fmt would take memory in every pod
		return
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	wait(signals)
}

// wait returns at the first SIGINT or SIGTERM.
func wait(signals <-chan os.Signal) {
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		reap()
	}
}

// reap reaps every child that has ended. One SIGCHLD may stand for several.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}
