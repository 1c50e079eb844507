package nodeimage

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/run"
)

// kindModule has the files of kind's base image; go.mod pins its version.
const kindModule = "sigs.k8s.io/kind"

// kindSkipped are the files of kind's base image that ours does not need: it has its own
// configuration of containerd, no fuse-overlayfs, and no script that installs packages.
var kindSkipped = map[string]bool{
	"etc/containerd/config.toml":                           true,
	"etc/systemd/system/containerd-fuse-overlayfs.service": true,
	"usr/local/bin/clean-install":                          true,
}

// kindBase is the folder of kind's module with the files of its base image.
const kindBase = "images/base/files"

// moduleDir returns the directory of a module at the version in go.mod. It downloads a module
// that the module cache does not have.
func moduleDir(ctx context.Context, l layout.Layout, module string) (string, error) {
	out, err := run.Command(ctx, "go", "mod", "download", "-json", module).Dir(l.Root).Output()
	if err != nil {
		return "", err
	}
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return "", fmt.Errorf("reading where the module cache has %s: %w", module, err)
	}
	return found.Dir, nil
}

// kindFilesIn reads the files below fsys. Scripts are executable on the node, other files
// are not.
func kindFilesIn(fsys fs.FS) ([]image.File, error) {
	var files []image.File
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || kindSkipped[name] {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if path.Base(path.Dir(name)) == "bin" || strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		files = append(files, image.File{Path: "/" + name, Mode: mode, Data: data})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("it has no " + kindBase + ": this version of kind is laid out differently")
	}
	return files, nil
}
