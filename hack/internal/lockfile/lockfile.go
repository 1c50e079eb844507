// Package lockfile lets podenv processes take turns. The kernel drops the lock of a
// process that ends, so a killed one leaves nothing to clean up.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"podenv.dev/hack/internal/progress"
)

// ErrHeld is the error of TryLock while another process holds the lock.
var ErrHeld = errors.New("held by another podenv")

// retry is how often a waiting process tries again.
const retry = 100 * time.Millisecond

// Lock takes the lock file at path for this process alone, and creates it if needed. It
// waits as long as ctx lasts. holder says in the step, and in the error, what the other
// process does: "that builds in <folder>".
func Lock(ctx context.Context, path, holder string, step *progress.Step) (unlock func(), err error) {
	unlock, err = TryLock(path)
	if !errors.Is(err, ErrHeld) {
		return unlock, err
	}
	step.Now("waiting for another podenv %s", holder)
	f := flock.New(path)
	if _, err := f.TryLockContext(ctx, retry); err != nil {
		return nil, fmt.Errorf("waiting for another podenv %s: %w", holder, err)
	}
	return unlocker(f), nil
}

// TryLock is Lock without waiting: ErrHeld is in the chain of its error.
func TryLock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f := flock.New(path)
	taken, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if !taken {
		return nil, fmt.Errorf("lock %s: %w", path, ErrHeld)
	}
	return unlocker(f), nil
}

// unlocker closes the file, which unlocks it, as the end of the process does.
func unlocker(f *flock.Flock) func() { return func() { _ = f.Close() } }
