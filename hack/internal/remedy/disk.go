package remedy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// noRoom is the free space, in bytes, below which a disk counts as full. A program that fails to
// write a large file may leave that much free.
const noRoom = 16 << 20

// ExplainDisk adds ErrNoDisk and its remedy to err if the disk of the directory dir is full. Not
// every program reports a full disk: git, for example, only names the files that it could not
// write to a work tree. Otherwise ExplainDisk returns err as it is.
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

// Existing returns path, or its nearest parent that exists.
func Existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}
