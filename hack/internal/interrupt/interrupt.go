// Package interrupt cancels work that nobody waits for any more.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Context returns a context that ends on Ctrl-C, on SIGTERM, or when the process writes to a
// standard output or standard error that nobody reads any more. None of these ends the process,
// so that it can clean up. After stop, Ctrl-C and SIGTERM do.
//
// A process that handles SIGPIPE also gets it for a broken network connection (see os/signal).
// That does not end the context.
func Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() {
		defer cancel()
		for {
			select {
			case <-pipes:
				if isBroken(os.Stdout) || isBroken(os.Stderr) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, stop
}

// isBroken reports whether f is a pipe or a terminal that nobody reads.
func isBroken(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
