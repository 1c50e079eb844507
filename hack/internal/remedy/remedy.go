// Package remedy has errors that say what to do about them.
package remedy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// Error is a failure that the user's host is to blame for.
type Error struct {
	Err    error  // what is wrong
	Remedy string // what the user can do about it
}

// New is err with what the user can do about it.
func New(err error, remedy string) error { return &Error{err, remedy} }

func (e *Error) Error() string { return e.Err.Error() + "\n  " + e.Remedy }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Failures that any command can meet. Each is in the chain of the errors of its kind.
var (
	// ErrNoDisk: a disk is full, this process's or the engine's.
	ErrNoDisk = errors.New("no space left on the disk")
	// ErrPortInUse: something else listens on a port that was asked for.
	ErrPortInUse = errors.New("port in use")
)

// ForDisk is the remedy for ErrNoDisk.
const ForDisk = "`podenv doctor` says which disk, and `podenv clean --dry-run` what may go; `podenv clean --go-cache` also empties Go's build cache"

// known are failures by the kernel's number, and by what it is called when a command
// prints it.
var known = []struct {
	kind   error
	number syscall.Errno
	said   []string
	remedy string
}{
	{ErrNoDisk, syscall.ENOSPC, []string{"no space left on device"}, ForDisk},
	{ErrPortInUse, syscall.EADDRINUSE, []string{"address already in use", "port is already allocated"},
		"see who listens there with `ss -ltnp`, and stop it or choose another port"},
}

// Explain adds to the error of a command what the user can do about it, and ErrNoDisk
// or ErrPortInUse to its chain, where it is of that kind. Any other error is returned
// as it is.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	for _, k := range known {
		if errors.Is(err, k.kind) {
			return err
		}
		if errors.Is(err, k.number) || Says(strings.ToLower(err.Error()), k.said...) {
			return &Error{fmt.Errorf("%w: %w", k.kind, err), k.remedy}
		}
	}
	return err
}

// Says reports whether output has one of parts.
func Says(output string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(output, part) })
}
