package envfile

import (
	"context"
	"errors"
	"time"
)

const (
	// attempts bounds how often an unstable file is read again, and pause is the
	// wait before that. Together they stay far below the time that a container
	// takes to start; the kubelet's back-off goes on from there.
	attempts = 6
	pause    = 10 * time.Millisecond
)

var errLeased = ErrUnstable.atLine(0, "a process holds a lease on the file: give the lease up")

// retry calls f again while that returns ErrUnstable, a few times, and not after
// the end of ctx.
func retry(ctx context.Context, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := reasonOf(f())
		if attempt == attempts || !errors.Is(err, ErrUnstable) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
