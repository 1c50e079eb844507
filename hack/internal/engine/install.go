package engine

import (
	"bytes"
	"context"
	"os"
	"os/exec"

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
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return h.packages.EnsureInstalled(ctx, step, "docker-cli") // of its own since Debian 13
	}
	return nil
}

func appArmor() bool {
	enabled, _ := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return bytes.HasPrefix(enabled, []byte("Y"))
}
