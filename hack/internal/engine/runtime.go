package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/layout"
)

const (
	// runtimeName is what dockerd calls the runtime hack/podenv-oci-runtime.
	runtimeName = "podenv"
	// runtimeFile is its name in the state folder: the same for every checkout,
	// since a daemon.json may name it.
	runtimeFile = "podenv-oci-runtime"
)

// installRuntime builds the OCI runtime for bounded hosts and puts it at path. That
// is outside of this checkout because the daemon and each container's shim execute
// it long after this checkout may be gone.
func (h *host) installRuntime(ctx context.Context, l layout.Layout, path string) error {
	binary, err := compile(ctx, l, "./hack/podenv-oci-runtime")
	if err != nil {
		return fmt.Errorf("building the OCI runtime for a host without all capabilities: %w", err)
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, binary) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := renameio.WriteFile(path, binary, 0o755); err != nil {
		return fmt.Errorf("installing the OCI runtime: %w", err)
	}
	return nil
}

// restoreRuntime puts the OCI runtime back that a running daemon was told to use
// and that somebody deleted: until then the daemon can start no container.
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

// offerRuntime puts the OCI runtime where the user of a daemon that was not started
// with it can make it the default, and returns the path, or "" where it is not needed
// or this user may not.
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
