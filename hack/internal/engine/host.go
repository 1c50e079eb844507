package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/capability"

	"podenv.dev/hack/internal/debian"
)

// host is what this package knows about the machine; tests have their own.
type host struct {
	uid          int
	systemd      bool     // systemd is the init process
	state        string   // directory for what a running daemon needs, outside of any checkout
	run          string   // directory of dockerd's PID files
	cgroup       string   // where cgroups are mounted
	sbin         []string // directories of system commands that a user's PATH may lack
	config       string   // the user's daemon.json
	startTimeout time.Duration
	packages     debian.Installer
	missing      func(pid int) ([]string, error)
}

func thisHost() *host {
	_, err := os.Stat("/run/systemd/system") // sd_booted(3)
	return &host{
		uid:          os.Geteuid(),
		systemd:      err == nil,
		state:        "/var/lib/podenv",
		run:          "/var/run",
		cgroup:       "/sys/fs/cgroup",
		sbin:         []string{"/usr/local/sbin", "/usr/sbin", "/sbin"},
		config:       "/etc/docker/daemon.json",
		startTimeout: time.Minute,
		packages:     debian.ThisUser(),
		missing:      missingOf,
	}
}

// path returns PATH with the directories of system commands (dockerd, runc, iptables).
func (h *host) path() string {
	return strings.Join(append(filepath.SplitList(os.Getenv("PATH")), h.sbin...), string(filepath.ListSeparator))
}

func (h *host) lookPath(name string) string {
	for _, dir := range filepath.SplitList(h.path()) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// MissingCapabilities lists the capabilities that the kernel knows but that containers cannot
// have on this host, because the bounding set lacks them. The bounding set is the daemon's if
// it runs on this host, else that of this process.
func MissingCapabilities() ([]string, error) {
	return missingOf(thisHost().daemonPID())
}

// missingOf lists the capabilities that a process lacks; PID 0 is this process.
func missingOf(pid int) ([]string, error) {
	process, err := capability.NewPid2(pid)
	if err != nil {
		return nil, err
	}
	if err := process.Load(); err != nil {
		return nil, fmt.Errorf("reading the capability bounding set: %w", err)
	}
	all, err := capability.ListSupported()
	if err != nil {
		return nil, fmt.Errorf("reading which capabilities the kernel knows: %w", err)
	}
	var missing []string
	for _, c := range all {
		if !process.Get(capability.BOUNDING, c) {
			missing = append(missing, "CAP_"+strings.ToUpper(c.String()))
		}
	}
	return missing, nil
}
