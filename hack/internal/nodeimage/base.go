package nodeimage

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/mod/semver"
	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// defaultPause is the sandbox image that the base image names. Build writes the
// release's own over it; `kind build node-image --base-image` takes it as it is.
const defaultPause = "registry.k8s.io/pause:3.10"

// nodeConfig is what kind's own images say of themselves: systemd learns that it is
// in a container, and the engine how to stop it (systemd's CONTAINER_INTERFACE).
var nodeConfig = v1.Config{
	Env:        []string{image.SearchPath, "container=docker"},
	Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
	StopSignal: "SIGRTMIN+3",
}

// ownFiles are the files that podenv adds to kind's: those of the folder files on every
// node, those of the folder debian on nodes with Debian's containerd.
//
//go:embed files debian
var ownFiles embed.FS

// embedded returns those of ownFiles that are in a folder.
func embedded(folder string) ([]image.File, error) {
	own, err := fs.Sub(ownFiles, folder)
	if err != nil {
		return nil, err
	}
	return kindFilesIn(own)
}

// Base returns the reference of the root file system image: Debian, the series'
// containerd and kind's base files, without anything of Kubernetes, so that it can be
// made while Kubernetes compiles. It is named by its content, and made once.
// ErrPackagesMoved is in the chain of the error when the mirrors no longer have the
// pinned packages.
func Base(ctx context.Context, l layout.Layout, e *engine.Engine, s series.Series, step *progress.Step) (string, error) {
	var tar string
	var runtime []image.File
	var leftOut []string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		tar, err = rootFS(gctx, l, step)
		return err
	})
	g.Go(func() (err error) {
		runtime, leftOut, err = runtimeFiles(gctx, l, s, step)
		return err
	})
	if err := g.Wait(); err != nil {
		return "", err
	}
	files, err := baseFiles(ctx, l, s)
	if err != nil {
		return "", err
	}
	files = append(files, runtime...)
	layer, err := image.NewLayer(func(w io.Writer) error {
		raw, err := os.Open(tar)
		if err != nil {
			return err
		}
		defer raw.Close()
		return writeBase(w, raw, files, leftOut)
	})
	if err != nil {
		return "", err
	}
	img, err := image.New(nodeConfig, layer)
	if err != nil {
		return "", err
	}
	content, err := layer.DiffID()
	if err != nil {
		return "", err
	}
	ref := "podenv/node-base:" + content.Hex[:12]
	if hasImage(ctx, e, ref) {
		step.Cached(ref)
		return ref, nil
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

// baseFiles are the files that every base image has on top of Debian's.
func baseFiles(ctx context.Context, l layout.Layout, s series.Series) ([]image.File, error) {
	files, err := kindFiles(ctx, l)
	if err != nil {
		return nil, err
	}
	added, err := embedded("files")
	if err != nil {
		return nil, err
	}
	if semver.Compare(s.Name, refusesCgroupV1) >= 0 {
		if err := allowCgroupV1(files); err != nil {
			return nil, err
		}
	}
	config := image.File{Path: containerdConfigFile, Mode: 0o644, Data: containerdConfig(s, defaultPause)}
	return slices.Concat(files, added, []image.File{config}, services()), nil
}

// refusesCgroupV1 is the first minor whose kubelet does not start on a host with cgroup v1
// unless it is told to.
const refusesCgroupV1 = "v1.35"

// allowCgroupV1 tells the kubelet, in kind's file with its flags, whoever creates the cluster.
func allowCgroupV1(files []image.File) error {
	const flags = "/etc/default/kubelet"
	i := slices.IndexFunc(files, func(f image.File) bool { return f.Path == flags })
	if i < 0 || !bytes.HasPrefix(files[i].Data, []byte("KUBELET_EXTRA_ARGS=")) {
		return fmt.Errorf("kind's base image has no KUBELET_EXTRA_ARGS in %s: this version of kind is laid out differently", flags)
	}
	files[i].Data = fmt.Appendf(nil, "%s --fail-cgroupv1=false\n", bytes.TrimSpace(files[i].Data))
	return nil
}

// services enables what a node runs, as `systemctl enable` would, and gives kind's
// units the paths that they name.
func services() []image.File {
	const system = "/etc/systemd/system/"
	files := []image.File{
		{Path: "/usr/sbin/init", Link: "/usr/lib/systemd/systemd"},
		{Path: "/etc/kubernetes/manifests", Mode: fs.ModeDir | 0o755},
		// systemd-binfmt would change the machine's kernel, not the node's
		{Path: system + "systemd-binfmt.service", Link: "/dev/null"},
	}
	for _, unit := range []string{"containerd.service", "kubelet.service", "undo-mount-hacks.service"} {
		files = append(files, image.File{Path: system + "multi-user.target.wants/" + unit, Link: system + unit})
	}
	return files
}

func hasImage(ctx context.Context, e *engine.Engine, ref string) bool {
	return e.Docker(ctx, "image", "inspect", "--format", "{{.Id}}", ref).Run() == nil
}
