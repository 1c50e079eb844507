package remedy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// noRoom is the free space, in bytes, under which a failure is put down to the disk: a
// program that could not write the next file may leave that much.
const noRoom = 16 << 20

// ExplainDisk adds ErrNoDisk and what to do about it to an error that came while the disk
// of the folder dir had no room left. Not every program says so itself: git, which lost a
// work tree to a full disk, names only the files. Any other error is returned as it is.
func ExplainDisk(dir string, err error) error {
	if err == nil || errors.Is(err, ErrNoDisk) {
		return err
	}
	var stat unix.Statfs_t
	if unix.Statfs(Existing(dir), &stat) != nil || stat.Bavail*uint64(stat.Bsize) >= noRoom {
		return err
	}
	return New(fmt.Errorf("%w: %w", ErrNoDisk, err),
		fmt.Sprintf("the disk of %s is full: free some space, and run the same command again", filepath.Clean(dir)))
}

// Existing is path or the nearest of its parents that exists.
func Existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}
