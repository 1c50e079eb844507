package nodeimage

import (
	"context"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"runtime"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

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
