package nodeimage

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"runtime"
	"strings"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
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

// kindFilesIn reads the files below fsys. Scripts are executable on the node, other files are not.
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

// storage is the provisioner of the default StorageClass, as kind's own node images have it.
type storage struct {
	// manifest has the StorageClass and the deployment of the provisioner.
	manifest string
	// The images that the manifest names. The provisioner makes and deletes a volume's folder by a pod of
	// the helper, on the node to which the volume belongs.
	provisioner, helper string
}

// storageSource is the file of kind's module with the manifest and the references of its images.
const storageSource = "pkg/build/nodeimage/const_storage.go"

// storageIn reads the constants of storageSource, because its package exports none of them.
func storageIn(file string) (storage, error) {
	files := token.NewFileSet()
	source, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return storage{}, fmt.Errorf("reading kind's StorageClass: %w", err)
	}
	pkg, err := new(types.Config).Check("nodeimage", files, []*ast.File{source}, nil)
	if err != nil {
		return storage{}, fmt.Errorf("reading kind's StorageClass: %w", err)
	}
	var values [3]string
	for i, name := range []string{"defaultStorageManifest", "storageProvisionerImage", "storageHelperImage"} {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok || c.Val().Kind() != constant.String {
			return storage{}, fmt.Errorf("%s has no string %s: this version of kind is laid out differently", file, name)
		}
		values[i] = constant.StringVal(c.Val())
	}
	return storage{manifest: values[0], provisioner: values[1], helper: values[2]}, nil
}

// support returns the image of the provisioner, whose version hack/images/local-path-provisioner pins.
func (s storage) support() support {
	return support{
		ref: s.provisioner, program: gobuild.Program{Dir: "hack/images/local-path-provisioner", Package: "github.com/rancher/local-path-provisioner"},
		binary: "/usr/local/bin/local-path-provisioner", // the manifest's command, looked up in PATH
	}
}

// helperImage returns the archive of the image with the shell that runs the manifest's scripts, from
// Debian's busybox.
func (s storage) helperImage(ctx context.Context, l layout.Layout, step *progress.Step) (string, error) {
	files, err := debian.Files(ctx, l, runtime.GOARCH, step, "busybox-static")
	if err != nil {
		return "", err
	}
	for _, applet := range []string{"sh", "mkdir", "rm"} {
		files = append(files, image.File{Path: "/bin/" + applet, Link: "/usr/bin/busybox"})
	}
	archive, _, err := image.Spec{Name: s.helper, Files: files}.Cached(l.Cache("support"), "local-path-helper")
	return archive, err
}
