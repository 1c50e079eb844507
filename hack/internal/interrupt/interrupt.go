// Package interrupt ends work that nobody waits for any more.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Context returns a context that ends with Ctrl-C, with SIGTERM, or when something is written to
// the standard output or error that nobody reads any more. Until stop is called, none of them
// ends the process, so that it can clean up.
//
// A connection that breaks raises SIGPIPE too in a process that is told of it (os/signal): it
// ends nothing.
func Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, release := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() {
		for {
			select {
			case <-pipes:
				if unread(os.Stdout) || unread(os.Stderr) {
					cancel()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(pipes)
		cancel()
		release()
	}
}

// unread says whether f is a pipe or a terminal with nobody at its other end.
func unread(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
