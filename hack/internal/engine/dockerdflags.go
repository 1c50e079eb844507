package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/remedy"
)

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

// configuredRuntimes returns the settings of the user's daemon.json that dockerd refuses to
// take as flags, too.
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
