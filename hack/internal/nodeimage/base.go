package nodeimage

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// baseFormat is part of the reference of a base image. Increment it when writeBase changes.
const baseFormat = "1"

// defaultPause is the sandbox image in the base image's containerd configuration. Build
// replaces it with the release's own; `kind build node-image --base-image` uses it as it is.
const defaultPause = "registry.k8s.io/pause:3.10"

// nodeConfig is the configuration of kind's own images. It tells systemd that it runs in a
// container, and the engine how to stop it (systemd's CONTAINER_INTERFACE).
var nodeConfig = v1.Config{
	Env:        []string{image.SearchPath, "container=docker"},
	Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
	StopSignal: "SIGRTMIN+3",
}

// ownFiles are the files that podenv adds to kind's.
//
//go:embed files
var ownFiles embed.FS

// Base builds the base image and returns its reference, which has a hash of all inputs. An
// image that exists is not built again. It has Debian, containerd and kind's base files, but
// nothing of Kubernetes, so that it can be built while Kubernetes compiles.
func Base(ctx context.Context, l layout.Layout, e *engine.Engine, step *progress.Step) (string, error) {
	key, write, err := baseLayer(ctx, l, step)
	if err != nil {
		return "", err
	}
	ref := "podenv/node-base:" + key[:12]
	if hasImage(ctx, e, ref) {
		step.Cached(ref)
		return ref, nil
	}
	layer, err := image.NewLayer(write)
	if err != nil {
		return "", err
	}
	img, err := image.New(runtime.GOARCH, nodeConfig, layer)
	if err != nil {
		return "", err
	}
	step.Now("loading %s", ref)
	pr, pw := io.Pipe()
	defer pr.Close()
	go func() { pw.CloseWithError(image.Write(pw, ref, img)) }()
	if err := e.Docker(ctx, "load").Stdin(pr).Log(step.Log()).Run(); err != nil {
		return "", fmt.Errorf("loading the root file system: %w", err)
	}
	return ref, nil
}

// baseLayer returns what writes the tar of the base image, and a hash of all inputs.
func baseLayer(ctx context.Context, l layout.Layout, step *progress.Step) (key string, write func(io.Writer) error, err error) {
	var tar string
	var programs []image.File
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		tar, err = debian.Nodes.RootFS(gctx, l, step)
		return err
	})
	g.Go(func() (err error) {
		programs, err = containerRuntime(gctx, l, step)
		return err
	})
	if err := g.Wait(); err != nil {
		return "", nil, err
	}
	files, err := baseFiles(ctx, l)
	if err != nil {
		return "", nil, err
	}
	files = append(files, programs...)
	content, err := image.FilesKey(files)
	// The name of the tar has a hash of what it was made from, so 200 MB need not be read again.
	return digest.Of(baseFormat, filepath.Base(tar), fmt.Sprint(nodeConfig), content), func(w io.Writer) error {
		raw, err := os.Open(tar)
		if err != nil {
			return err
		}
		defer raw.Close()
		return writeBase(w, raw, files)
	}, err
}

// baseFiles returns the files that the base image has in addition to Debian's.
func baseFiles(ctx context.Context, l layout.Layout) ([]image.File, error) {
	kind, err := moduleDir(ctx, l, kindModule)
	if err != nil {
		return nil, fmt.Errorf("finding kind's base image: %w", err)
	}
	files, err := kindFilesIn(os.DirFS(filepath.Join(kind, kindBase)))
	if err != nil {
		return nil, fmt.Errorf("kind's base image in %s: %w", kind, err)
	}
	own, err := fs.Sub(ownFiles, "files")
	if err != nil {
		return nil, err
	}
	added, err := kindFilesIn(own)
	if err != nil {
		return nil, err
	}
	storage, err := storageIn(filepath.Join(kind, storageSource))
	if err != nil {
		return nil, err
	}
	return slices.Concat(files, added, []image.File{
		{Path: containerdConfigFile, Mode: 0o644, Data: containerdConfig(defaultPause)},
		{Path: "/kind/manifests/default-storage.yaml", Mode: 0o644, Data: []byte(storage.manifest)},
	}, services()), nil
}

// services returns the links that enable a node's services, as `systemctl enable` makes them,
// and the paths that kind's units refer to.
func services() []image.File {
	const system = "/etc/systemd/system/"
	files := []image.File{
		// instead of this machine's mirrors, which another one may not reach
		{Path: "/etc/apt/sources.list", Mode: 0o644, Data: []byte("# Name mirrors of Debian here to use apt on this node.\n")},
		{Path: "/usr/sbin/init", Link: "/usr/lib/systemd/systemd"},
		{Path: "/etc/kubernetes/manifests", Mode: fs.ModeDir | 0o755},
		{Path: "/" + cniBin, Mode: fs.ModeDir | 0o755},
		// systemd-binfmt would change the host's kernel
		{Path: system + "systemd-binfmt.service", Link: "/dev/null"},
	}
	for _, unit := range []string{"containerd.service", "kubelet.service", "podenv-images.service", "undo-mount-hacks.service"} {
		files = append(files, image.File{Path: system + "multi-user.target.wants/" + unit, Link: system + unit})
	}
	return files
}

func hasImage(ctx context.Context, e *engine.Engine, ref string) bool {
	return e.Docker(ctx, "image", "inspect", "--format", "{{.Id}}", ref).Run() == nil
}
