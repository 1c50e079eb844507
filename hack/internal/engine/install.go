package engine

import (
	"bytes"
	"context"
	"os"
	"os/exec"

	"podenv.dev/hack/internal/progress"
)

// installDocker installs Debian's Docker if the daemon or its command is missing.
func (h *host) installDocker(ctx context.Context, step *progress.Step) error {
	if h.lookPath("dockerd") == "" {
		names := []string{"docker.io", "iptables"}
		if appArmor() {
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

func appArmor() bool {
	enabled, _ := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return bytes.HasPrefix(enabled, []byte("Y"))
}
