package engine

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// What a host can get in the way with. Each is in the chain of the errors of its kind.
var (
	// ErrNoEngine: no container engine serves, and none could be made to.
	ErrNoEngine = errors.New("no container engine")
	// ErrPrivileged: the engine serves but refuses privileged containers, which
	// kind's nodes are.
	ErrPrivileged = errors.New("the container engine refuses privileged containers")
	// ErrNoDisk: a disk is full, this process's or the engine's.
	ErrNoDisk = errors.New("no space left on the disk")
	// ErrPortInUse: something else listens on a port that was asked for.
	ErrPortInUse = errors.New("port in use")
)

// HostError is a failure that the user's host is to blame for.
type HostError struct {
	Err    error  // what is wrong, with one of the errors above in its chain
	Remedy string // what the user can do about it
}

func (e *HostError) Error() string { return e.Err.Error() + "\n  " + e.Remedy }

// Unwrap returns what is wrong.
func (e *HostError) Unwrap() error { return e.Err }

// remedies are what to do about a failure of a kind, by what the kernel's error is
// called when a command prints it.
var remedies = []struct {
	kind   error
	number syscall.Errno
	said   []string
	remedy string
}{
	{ErrNoDisk, syscall.ENOSPC, []string{"no space left on device"},
		"`podenv doctor` says which disk, and `podenv clean --dry-run` what may go; `podenv clean --go-cache` also empties Go's build cache"},
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
	for _, r := range remedies {
		if errors.Is(err, r.kind) {
			return err
		}
		if errors.Is(err, r.number) || containsAny(strings.ToLower(err.Error()), r.said...) {
			return &HostError{fmt.Errorf("%w: %w", r.kind, err), r.remedy}
		}
	}
	return err
}

// remedyOf reads the daemon's log for what the host lacks.
func remedyOf(log string) string {
	switch log := strings.ToLower(log); {
	case containsAny(log, "no space left on device"):
		return remedies[0].remedy
	case containsAny(log, "iptables"):
		return "this kernel may lack what one of Debian's two iptables needs: try `update-alternatives --set iptables /usr/sbin/iptables-legacy`, or /usr/sbin/iptables-nft where that one is set"
	case containsAny(log, "pid file found", "address already in use"):
		return "another daemon is there: stop it, or point DOCKER_HOST to it"
	case containsAny(log, "cgroup isn't mounted", "cgroup mountpoint does not exist"):
		return "no cgroups are mounted: `apt-get install cgroupfs-mount && cgroupfs-mount` as root, or start this machine with /sys/fs/cgroup"
	}
	return "mend what the log says, and try again"
}
