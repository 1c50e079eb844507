package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/capability"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// cleanTimeout limits how long it takes to remove the probe's container and image.
const cleanTimeout = 20 * time.Second

// cachedProbe runs probe unless it succeeded before with the same daemon.
func cachedProbe(ctx context.Context, l layout.Layout, daemon string, step *progress.Step) (cached bool, err error) {
	path := filepath.Join(l.Cache("engine"), daemon)
	if _, err := os.Stat(path); err == nil {
		return true, nil
	}
	if err := probe(ctx, l, step); err != nil {
		return false, err
	}
	return false, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644))
}

// daemonKey identifies the daemon from its start to its end.
func (h *host) daemonKey(info Info) string {
	started := ""
	if stat, err := os.Stat(filepath.Join(h.run, "docker.pid")); err == nil {
		started = stat.ModTime().String()
	}
	return digest.Of(info.ID, info.ServerVersion, info.DefaultRuntime, fmt.Sprint(h.daemonPID()), started)[:16]
}

// probe runs a privileged container from a tiny image of its own, and a privileged process in
// it. If the engine refuses one of them, the error wraps ErrPrivileged.
func probe(ctx context.Context, l layout.Layout, step *progress.Step) error {
	step.Now("trying a privileged container")
	binary, err := compile(ctx, l, "./hack/internal/engine/probe")
	if err != nil {
		return fmt.Errorf("building the probe for privileged containers: %w", err)
	}
	layer, err := image.NewLayer(image.WriteTar([]image.File{{Path: "/probe", Mode: 0o755, Data: binary}}))
	if err != nil {
		return err
	}
	root, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer root.Close()
	name := "podenv-probe-" + strings.ToLower(rand.Text()[:8])
	ref := "podenv/probe:" + name
	docker := func(ctx context.Context, args ...string) *run.Cmd {
		return run.Command(ctx, "docker", args...).Log(step.Log())
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		_ = docker(ctx, "rm", "--force", "--volumes", name).Run()
		_ = docker(ctx, "rmi", "--force", ref).Run()
	}()
	if err := docker(ctx, "import", "-", ref).Stdin(root).Run(); err != nil {
		return err
	}
	for _, args := range [][]string{
		// The flags are kind's.
		{"run", "--pull=never", "--detach", "--name", name, "--privileged", "--cgroupns=private",
			"--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined", "--network=none", ref, "/probe", "wait"},
		{"exec", "--privileged", name, "/probe"},
	} {
		if err := docker(ctx, args...).Run(); err != nil {
			return fmt.Errorf("%w: %w", ErrPrivileged, err)
		}
	}
	return nil
}

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
