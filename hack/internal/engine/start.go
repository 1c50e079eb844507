package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/run"
)

// start starts the local daemon, with systemd if that is the init process, else by itself.
func (h *host) start(ctx context.Context, l layout.Layout, step *progress.Step) error {
	if h.systemd {
		return h.startService(ctx, step)
	}
	if h.uid != 0 {
		return remedy.New(
			fmt.Errorf("%w: there is no systemd to start Docker, and only root can do it without", ErrNoEngine),
			"run podenv as root: `sudo env PATH=\"$PATH\" make up`",
		)
	}
	// Two podenv processes, even of different checkouts, must not start two daemons.
	unlock, err := lockfile.Lock(ctx, filepath.Join(h.state, "lock"), "that starts dockerd", step)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := queryInfo(ctx); err == nil {
		return nil // another podenv was faster
	}
	if pid := h.daemonPID(); pid > 0 {
		step.Now("waiting for the dockerd that is starting")
		return daemonError(h.await(ctx, nil), fmt.Sprintf("dockerd, process %d,", pid), "stop it, and try again")
	}
	flags, err := h.daemonFlags(ctx, l)
	if err != nil {
		return err
	}
	step.Now("starting dockerd")
	return h.startDaemon(ctx, flags)
}

func (h *host) startService(ctx context.Context, step *progress.Step) error {
	const hint = "see `journalctl -u docker -n 50`"
	step.Now("starting docker.service")
	command := debian.AsRoot(h.uid, "systemctl", "start", "docker")
	if err := run.Command(ctx, command[0], command[1:]...).Log(step.Log()).Run(); err != nil {
		return remedy.New(fmt.Errorf("%w: %w", ErrNoEngine, err), hint)
	}
	return daemonError(h.await(ctx, nil), "docker.service", hint)
}

// daemonError adds ErrNoEngine, the name of the daemon and a remedy to an error of await. An
// error that wraps ErrNoEngine has all that.
func daemonError(err error, daemon, hint string) error {
	if err == nil || errors.Is(err, ErrNoEngine) {
		return err
	}
	return remedy.New(fmt.Errorf("%w: %s %w", ErrNoEngine, daemon, err), hint)
}

// installDocker installs Debian's Docker if the daemon or its command is missing.
func (h *host) installDocker(ctx context.Context, step *progress.Step) error {
	if h.lookPath("dockerd") == "" {
		names := []string{"docker.io", "iptables"}
		if enabled, _ := os.ReadFile("/sys/module/apparmor/parameters/enabled"); bytes.HasPrefix(enabled, []byte("Y")) {
			// dockerd uses AppArmor if the kernel has it, and cannot load its profile without the parser.
			names = append(names, "apparmor")
		}
		if err := h.packages.EnsureInstalled(ctx, step, names...); err != nil {
			return err
		}
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return h.packages.EnsureInstalled(ctx, step, "docker-cli") // a separate package since Debian 13
	}
	return nil
}
