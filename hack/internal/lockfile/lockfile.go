// Package lockfile locks files between podenv processes. The kernel releases the locks of
// a process that exits, so a killed one leaves nothing to clean up.
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

// ErrHeld is returned by TryLock while another process holds the lock.
var ErrHeld = errors.New("held by another podenv")

// retry is the interval at which Lock tries again.
const retry = 100 * time.Millisecond

// Lock takes an exclusive lock on the file at path, and creates the file if needed. It
// waits until ctx ends. holder describes the other process in the step and in the error:
// "that builds in <folder>".
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

// TryLock is Lock without waiting: it returns an error that wraps ErrHeld instead.
func TryLock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f := flock.New(path)
	locked, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if !locked {
		return nil, fmt.Errorf("lock %s: %w", path, ErrHeld)
	}
	return unlocker(f), nil
}

// unlocker closes the file, which also releases the lock.
func unlocker(f *flock.Flock) func() { return func() { _ = f.Close() } }
