package engine

import (
	"errors"
	"fmt"
	"path/filepath"
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

// explainRefusal adds the likely cause and a remedy to an error that wraps ErrPrivileged, and
// returns other errors as they are. runtime is the path of an OCI runtime that would help, or "".
func (h *host) explainRefusal(info Info, err error, runtime string) error {
	if !errors.Is(err, ErrPrivileged) {
		return err
	}
	if remedy.ContainsAny(strings.Join(info.SecurityOptions, " "), "name=rootless", "name=userns") {
		return remedy.New(
			fmt.Errorf("%w\n  this daemon maps users (rootless, or userns-remap)", err),
			"use one that runs as root and does not, see `docker context ls`",
		)
	}
	missing, missingErr := h.missing(h.daemonPID())
	if missingErr != nil || len(missing) == 0 {
		return remedy.New(err, "use a host, or a Docker, that allows privileged containers: kind's nodes are such")
	}
	err = fmt.Errorf("%w\n  this host lacks %s", err, strings.Join(missing, ", "))
	if info.DefaultRuntime == runtimeName {
		return remedy.New(err, "see what dockerd says, in "+filepath.Join(h.state, "dockerd.log")+" where podenv started it")
	}
	err = fmt.Errorf("%w, and the dockerd that serves was not started to cope with that", err)
	hint := "stop it, and `podenv up` as root starts one that is"
	if runtime != "" {
		hint += "; or " + h.remedyConfig(runtime)
	}
	return remedy.New(err, hint)
}
