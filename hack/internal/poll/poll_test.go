package poll

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func TestPoll(t *testing.T) {
	awaited := errors.New("the API server is not ready")
	t.Run("tries until it succeeds", func(t *testing.T) {
		tries := 0
		err := Until(t.Context(), time.Minute, func(context.Context) error {
			if tries++; tries < 3 {
				return awaited
			}
			return nil
		})
		if err != nil || tries != 3 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
	t.Run("says what it waited for", func(t *testing.T) {
		err := Until(t.Context(), 10*time.Millisecond, func(context.Context) error { return awaited })
		if !errors.Is(err, awaited) || !strings.HasPrefix(err.Error(), "still waiting after 10ms") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("keeps what it waited for from the deadline's own error", func(t *testing.T) {
		tries := 0
		err := Until(t.Context(), time.Second, func(ctx context.Context) error {
			if tries++; tries == 1 {
				return awaited
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, awaited) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("keeps it from the error of a client that would ask too late", func(t *testing.T) {
		tries := 0
		err := Until(t.Context(), time.Second, func(ctx context.Context) error {
			if tries++; tries == 1 {
				return awaited
			}
			limiter := rate.NewLimiter(rate.Every(time.Hour), 1)
			limiter.Allow()
			return limiter.Wait(ctx)
		})
		if !errors.Is(err, awaited) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("gives up on what waiting does not fix", func(t *testing.T) {
		tries := 0
		err := Until(t.Context(), time.Minute, func(context.Context) error { tries++; return Stop(awaited) })
		if err != awaited || tries != 1 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := Until(ctx, time.Minute, func(context.Context) error { cancel(); return awaited })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}
