package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"podenv.dev/hack/internal/progress"
)

// installDocker installs Debian's Docker where the daemon or its command is missing.
func (h *host) installDocker(ctx context.Context, step *progress.Step) error {
	if h.look("dockerd") == "" {
		names := []string{"docker.io", "iptables"}
		if appArmor() {
			// Without its parser, dockerd cannot load the profile that it then asks for.
			names = append(names, "apparmor")
		}
		if err := h.packages.EnsureInstalled(ctx, step, names...); err != nil {
			return err
		}
		if err := h.stopPlainDaemon(ctx); err != nil {
			return err
		}
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return h.packages.EnsureInstalled(ctx, step, "docker-cli") // of its own since Debian 13
	}
	return nil
}

// stopPlainDaemon stops the dockerd that an installation started through its init
// script: on a bounded host it would refuse privileged containers.
func (h *host) stopPlainDaemon(ctx context.Context) error {
	missing, err := h.missing(0)
	pid := h.daemonPID()
	if h.systemd || pid == 0 || err != nil || len(missing) == 0 {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the dockerd that its installation started: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, h.startTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for processName(pid) == "dockerd" {
		select {
		case <-ctx.Done():
			return fmt.Errorf("stopping the dockerd that its installation started, process %d: %w", pid, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

func appArmor() bool {
	enabled, _ := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return bytes.HasPrefix(enabled, []byte("Y"))
}
