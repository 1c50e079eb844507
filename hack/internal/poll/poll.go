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

// Fatal wraps an error that waiting longer does not fix.
type Fatal struct{ error }

// Stop returns err as one that ends the wait.
func Stop(err error) error { return Fatal{err} }

// Unwrap returns the wrapped error.
func (f Fatal) Unwrap() error { return f.error }

// Until calls try until it returns nil. It gives up when ctx ends, after limit, or when
// the error of try is Fatal. Its own error is then the last one of try, which names the
// condition.
func Until(ctx context.Context, limit time.Duration, try func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	var last error
	for {
		err := try(limited)
		if err == nil {
			return nil
		}
		if f := (Fatal{}); errors.As(err, &f) {
			return f.error
		}
		// The attempt that the deadline cut off says less than the one before it.
		if limited.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("still waiting after %s: %w", limit, last)
		case <-tick.C:
		}
	}
}
