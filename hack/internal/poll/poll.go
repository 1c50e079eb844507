// Package poll waits for conditions.
package poll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Interval is how often a condition is checked.
const Interval = 200 * time.Millisecond

// Fatal wraps an error that ends the wait.
type Fatal struct{ error }

// Stop returns err as a Fatal: waiting longer does not fix it.
func Stop(err error) error { return Fatal{err} }

// Unwrap returns the wrapped error.
func (f Fatal) Unwrap() error { return f.error }

// Until calls check every Interval until it returns nil. It gives up when ctx ends, after timeout, or if the
// error of check is Fatal. After timeout, its error wraps the last one of check, which names the condition.
func Until(ctx context.Context, timeout time.Duration, check func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	var last error
	for {
		err := check(limited)
		if err == nil {
			return nil
		}
		if fatal, ok := errors.AsType[Fatal](err); ok {
			return fatal.error
		}
		// An error from the deadline, or of a client that cannot ask again before it, says less than the one before.
		if deadline, _ := limited.Deadline(); time.Until(deadline) > time.Second || last == nil {
			last = err
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("still waiting after %s: %w", timeout, last)
		case <-tick.C:
		}
	}
}
