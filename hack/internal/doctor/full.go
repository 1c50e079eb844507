package doctor

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
)

// noRoom is the free space, in bytes, under which a failure is put down to the disk: a
// program that could not write the next file may leave that much.
const noRoom = 16 << 20

// ExplainDisk adds engine.ErrNoDisk and what to do about it to an error that came
// while _output had no room left. Not every program says so itself: git, which lost a
// work tree to a full disk, names only the files. Any other error is returned as it is.
func ExplainDisk(l layout.Layout, err error) error {
	if err == nil || errors.Is(err, engine.ErrNoDisk) {
		return err
	}
	var stat unix.Statfs_t
	if unix.Statfs(existing(l.Output()), &stat) != nil || stat.Bavail*uint64(stat.Bsize) >= noRoom {
		return err
	}
	return &engine.HostError{
		Err:    fmt.Errorf("%w: %w", engine.ErrNoDisk, err),
		Remedy: fmt.Sprintf("the disk of %s is full: free some space, and run the same command again", filepath.Clean(l.Output())),
	}
}
