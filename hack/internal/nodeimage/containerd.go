package nodeimage

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// criBase is the runtime spec that every container of a node starts from.
const criBase = "/etc/containerd/cri-base.json"

// containerdConfigFile is where containerd, and kind's entrypoint, look for the configuration.
const containerdConfigFile = "/etc/containerd/config.toml"

//go:embed containerd.toml.tmpl
var containerdTemplate string

// containerdConfig returns containerd's configuration, with pause as the sandbox image.
func containerdConfig(pause string) []byte {
	return []byte(strings.NewReplacer("PAUSE_IMAGE", pause, "BASE_SPEC", criBase).Replace(containerdTemplate))
}

// containerdSpec changes the container runtime's default spec as kind's base image does. It
// adds a hook that hides the machine's product name and UUID, and removes the resource
// limits, so that containers inherit those of the node.
func containerdSpec(spec []byte) ([]byte, error) {
	var s map[string]any
	if err := json.Unmarshal(spec, &s); err != nil {
		return nil, fmt.Errorf("the container runtime's default spec: %w", err)
	}
	process, ok := s["process"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the container runtime's default spec has no process")
	}
	delete(process, "rlimits")
	hooks, _ := s["hooks"].(map[string]any)
	if hooks == nil {
		hooks = map[string]any{}
		s["hooks"] = hooks
	}
	create, _ := hooks["createContainer"].([]any)
	hooks["createContainer"] = append(create, map[string]any{"path": "/kind/bin/mount-product-files.sh"})
	return json.MarshalIndent(s, "", "  ")
}
