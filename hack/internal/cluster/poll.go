package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// interval is how often a condition is looked at.
const interval = 200 * time.Millisecond

// fatal wraps an error that waiting longer does not mend.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// poll calls try until it returns nil. It gives up when ctx ends, after limit, or
// when try's error is fatal; its error is then try's last one, which names what was
// awaited.
func poll(ctx context.Context, limit time.Duration, try func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last error
	for {
		err := try(limited)
		if err == nil {
			return nil
		}
		if f := (fatal{}); errors.As(err, &f) {
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
