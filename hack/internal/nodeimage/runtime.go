package nodeimage

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// runtimePrograms are containerd and runc, by their path on a node, which is the one of kind.
// containerd lacks the snapshotters that need block devices or ZFS. runc is partly C, and
// links libseccomp for the seccomp profiles of pods.
var runtimePrograms = map[string]gobuild.Program{
	"/usr/local/bin/containerd":              containerdProgram("containerd", containerdTags),
	"/usr/local/bin/containerd-shim-runc-v2": containerdProgram("containerd-shim-runc-v2", containerdTags+",no_grpc"),
	"/usr/local/bin/ctr":                     containerdProgram("ctr", containerdTags),
	"/usr/local/sbin/runc": {
		Dir: "hack/images/runc", Package: "github.com/opencontainers/runc",
		Tags: "seccomp,runc_nocriu,urfave_cli_no_docs,osusergo,netgo", Cgo: true,
	},
}

const containerdTags = "no_btrfs,no_devmapper,no_zfs"

func containerdProgram(name, tags string) gobuild.Program {
	return gobuild.Program{Dir: "hack/images/containerd", Package: "github.com/containerd/containerd/v2/cmd/" + name, Tags: tags}
}

// BuildPackages are the Debian packages that compile runtimePrograms.
var BuildPackages = []string{"gcc", "libc6-dev", "libseccomp-dev", "pkg-config"}

// containerRuntime compiles runtimePrograms, and takes the runtime spec of containers from this containerd.
func containerRuntime(ctx context.Context, l layout.Layout, step *progress.Step) ([]image.File, error) {
	var files []image.File
	bin := func(file string) string { return filepath.Join(l.Cache("programs"), path.Base(file)) }
	step.Now("compiling containerd and runc")
	for file, program := range runtimePrograms {
		if err := gobuild.Static(ctx, l, program, bin(file), step); err != nil {
			return nil, err
		}
		files = append(files, image.File{Path: file, Mode: 0o755, Source: bin(file)})
	}
	spec, err := run.Command(ctx, bin("ctr"), "oci", "spec").Output()
	if err != nil {
		return nil, fmt.Errorf("asking containerd for the spec that containers start from: %w", err)
	}
	edited, err := containerdSpec([]byte(spec))
	return append(files, image.File{Path: criBase, Mode: 0o644, Data: edited}), err
}

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
