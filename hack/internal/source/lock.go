package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"podenv.dev/hack/internal/progress"
)

// lock takes the lock file at path, and waits for it as long as ctx lasts. The system drops
// the lock of a process that dies.
func lock(ctx context.Context, path string, step *progress.Step) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f := flock.New(path)
	if ok, err := f.TryLock(); err == nil && !ok {
		step.Now("waiting for another podenv that holds %s", path)
	}
	if _, err := f.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for another podenv that holds %s: %w", path, err)
	}
	return func() { f.Unlock() }, nil //nolint:errcheck // the process's end unlocks it too
}
