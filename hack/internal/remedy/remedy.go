// Package remedy has errors that say what to do about them.
package remedy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Error is a failure that the user can fix, such as a problem of the host.
type Error struct {
	Err    error  // what is wrong
	Remedy string // what the user can do about it
}

// New returns err with what the user can do about it.
func New(err error, remedy string) error { return &Error{err, remedy} }

func (e *Error) Error() string { return e.Err.Error() + "\n  " + e.Remedy }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Failures that any command may have. The errors of each kind wrap it.
var (
	// ErrNoDisk: a disk is full, this process's or the engine's.
	ErrNoDisk = errors.New("no space left on the disk")
	// ErrPortInUse: something else listens on a port that was asked for.
	ErrPortInUse = errors.New("port in use")
)

// ForDisk is the remedy for ErrNoDisk.
const ForDisk = "`podenv doctor` says which disk, and `podenv clean --dry-run` what may go; `go clean -cache` empties Go's build cache"

// known are failures that Explain finds, by errno or by the messages of commands.
var known = []struct {
	kind     error
	errno    syscall.Errno
	messages []string
	remedy   string
}{
	{ErrNoDisk, syscall.ENOSPC, []string{"no space left on device"}, ForDisk},
	{ErrPortInUse, syscall.EADDRINUSE, []string{"address already in use", "port is already allocated"},
		"see who listens there with `ss -ltnp`, and stop it, choose another port, or, if podenv chose this one, run it again"},
}

// Explain wraps an error of a known kind in ErrNoDisk or ErrPortInUse, and adds the remedy. It
// returns any other error, and one that has the remedy, as it is.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	for _, k := range known {
		if errors.Is(err, k.kind) || strings.Contains(err.Error(), k.remedy) {
			return err
		}
		if errors.Is(err, k.errno) || ContainsAny(strings.ToLower(err.Error()), k.messages...) {
			return &Error{fmt.Errorf("%w: %w", k.kind, err), k.remedy}
		}
	}
	return err
}

// ContainsAny reports whether output contains one of parts.
func ContainsAny(output string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(output, part) })
}

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
