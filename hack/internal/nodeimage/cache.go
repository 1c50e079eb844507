package nodeimage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
)

// keyOf is the digest of parts, as long as names of results have it: enough that two never
// meet.
func keyOf(parts ...string) string { return digest.Of(parts...)[:12] }

// lockFolder makes dir and gives it to this process alone until unlock is called, so
// that two commands at once do not make the same thing twice. What a killed process
// left in it goes: its names start with "new-".
func lockFolder(ctx context.Context, dir string, step *progress.Step) (unlock func(), err error) {
	unlock, err = lockfile.Lock(ctx, filepath.Join(dir, "lock"), "that works in "+dir, step)
	if err != nil {
		return nil, err
	}
	left, err := filepath.Glob(filepath.Join(dir, "new-*"))
	for _, path := range left {
		if err == nil {
			err = os.RemoveAll(path)
		}
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("removing what an earlier run left in %s: %w", dir, err)
	}
	return unlock, nil
}
