package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/remedy"
)

const (
	// runtimeName is the name of hack/podenv-oci-runtime in dockerd's configuration.
	runtimeName = "podenv"
	// runtimeFile is its file name in the state directory. All checkouts share it, because a
	// daemon.json may refer to it.
	runtimeFile = "podenv-oci-runtime"
)

// installRuntime builds the OCI runtime for hosts without all capabilities and installs it at
// path. That is outside of this checkout, because the daemon and the shim of each container may
// execute it after this checkout was deleted.
func (h *host) installRuntime(ctx context.Context, l layout.Layout, path string) error {
	binary, err := compile(ctx, l, "./hack/podenv-oci-runtime")
	if err != nil {
		return fmt.Errorf("building the OCI runtime for a host without all capabilities: %w", err)
	}
	if old, _ := os.ReadFile(path); bytes.Equal(old, binary) {
		return nil
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), renameio.WriteFile(path, binary, 0o755))
}

// restoreRuntime installs the OCI runtime again if it was deleted while the running daemon is
// configured to use it: without it, that daemon cannot start containers.
func (h *host) restoreRuntime(ctx context.Context, l layout.Layout, info Info) error {
	path := info.Runtimes[runtimeName].Path
	if path == "" || info.DefaultRuntime != runtimeName || h.daemonPID() == 0 {
		return nil
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return h.installRuntime(ctx, l, path)
}

// offerRuntime installs the OCI runtime for a daemon that was started without it, so that the user can make it
// the default. It returns the path, or "" if the daemon does not need it or this user may not install it.
func (h *host) offerRuntime(ctx context.Context, l layout.Layout, info Info) string {
	missing, err := h.missing(h.daemonPID())
	if err != nil || len(missing) == 0 || info.DefaultRuntime == runtimeName {
		return ""
	}
	path := filepath.Join(h.state, runtimeFile)
	if h.installRuntime(ctx, l, path) != nil {
		return ""
	}
	return path
}

// compile returns the static binary of one of this repository's own commands.
func compile(ctx context.Context, l layout.Layout, pkg string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "podenv-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "out")
	if err := gobuild.Static(ctx, l, gobuild.Program{Package: pkg}, out, nil); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// daemonFlags returns dockerd's flags. A host with all capabilities needs none.
func (h *host) daemonFlags(ctx context.Context, l layout.Layout) ([]string, error) {
	missing, err := h.missing(0)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	path := filepath.Join(h.state, runtimeFile)
	if err := h.installRuntime(ctx, l, path); err != nil {
		return nil, err
	}
	configured, err := h.configuredRuntimes()
	if err != nil {
		return nil, err
	}
	if len(configured) == 0 {
		return []string{"--add-runtime", runtimeName + "=" + path, "--default-runtime", runtimeName}, nil
	}
	if configured["default-runtime"] == runtimeName {
		return nil, nil
	}
	return nil, remedy.New(
		fmt.Errorf("%w: this host lacks %s, so that dockerd needs %s as its default runtime, but %s configures runtimes of its own, to which no flag can add",
			ErrPrivileged, strings.Join(missing, ", "), path, h.config),
		h.remedyConfig(path),
	)
}

// configuredRuntimes returns the settings of the user's daemon.json that dockerd refuses to take as flags, too.
func (h *host) configuredRuntimes() (map[string]any, error) {
	data, err := os.ReadFile(h.config)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, remedy.New(fmt.Errorf("%w: %s: %w", ErrNoEngine, h.config, err), "correct it: dockerd cannot read it either")
	}
	maps.DeleteFunc(config, func(key string, _ any) bool { return key != "default-runtime" && key != "runtimes" })
	return config, nil
}

// remedyConfig says how to configure the runtime at path for a daemon that podenv did not start.
func (h *host) remedyConfig(path string) string {
	return fmt.Sprintf(`add "runtimes": {%q: {"path": %q}}, "default-runtime": %q to %s and restart dockerd`,
		runtimeName, path, runtimeName, h.config)
}
