package engine

import (
	"errors"
	"strings"

	"podenv.dev/hack/internal/remedy"
)

// Problems of a host. The errors of each kind wrap it.
var (
	// ErrNoEngine: no container engine runs, and none could be started.
	ErrNoEngine = errors.New("no container engine")
	// ErrPrivileged: the engine runs, but refuses privileged containers such as kind's nodes.
	ErrPrivileged = errors.New("the container engine refuses privileged containers")
)

// remedyOf returns the remedy for the failure in the daemon's log.
func remedyOf(log string) string {
	switch log := strings.ToLower(log); {
	case remedy.ContainsAny(log, "no space left on device"):
		return remedy.ForDisk
	case remedy.ContainsAny(log, "iptables"):
		return "this kernel may lack what one of Debian's two iptables needs: try `update-alternatives --set iptables /usr/sbin/iptables-legacy`, or /usr/sbin/iptables-nft where that one is set"
	case remedy.ContainsAny(log, "pid file found", "address already in use"):
		return "another daemon is there: stop it, or point DOCKER_HOST to it"
	case remedy.ContainsAny(log, "cgroup isn't mounted", "cgroup mountpoint does not exist"):
		return "no cgroups are mounted: `apt-get install cgroupfs-mount && cgroupfs-mount` as root, or start this machine with /sys/fs/cgroup"
	}
	return "fix what the log says, and try again"
}
