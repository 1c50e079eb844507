package nodeimage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"podenv.dev/hack/internal/progress"
)

// lockRetry is how often a waiting process looks whether the lock is free.
const lockRetry = 200 * time.Millisecond

// lockFolder makes dir and gives it to this process alone until unlock is called, so
// that two commands at once do not make the same thing twice. What a killed process
// left in it goes: its names start with "new-".
func lockFolder(ctx context.Context, dir string, step *progress.Step) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	if ok, err := lock.TryLock(); err == nil && !ok {
		step.Now("waiting for another podenv that works in %s", dir)
	}
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("waiting for another podenv that works in %s: %w", dir, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "new-*"))
	for _, path := range left {
		if err == nil {
			err = os.RemoveAll(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("removing what an earlier run left in %s: %w", dir, err)
	}
	return func() { lock.Close() }, nil //nolint:errcheck // closing is unlocking
}
