package nodeimage

import (
	"archive/tar"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

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
	archive := image.Reader(func(w io.Writer) error { return image.Write(w, ref, img) })
	defer archive.Close()
	if err := e.Docker(ctx, "load").Stdin(archive).Log(step.Log()).Run(); err != nil {
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

// cniPlugins are the plugins that nodes keep. They move to cniBin, where kubeadm and other
// CNI plugins expect them.
var cniPlugins = []string{"bridge", "host-local", "loopback", "portmap", "ptp"}

const (
	debianCNI = "usr/lib/cni"
	cniBin    = "opt/cni/bin"
)

// dropped are path.Match patterns of what a node does not need from Debian's packages. A
// pattern that matches a directory drops everything below it.
var dropped = []string{
	// device nodes: the container engine makes its own
	"dev/*",
	// what this machine left in the root file system
	"etc/hostname", "etc/machine-id", "etc/resolv.conf", "etc/apt/apt.conf.d/99mmdebstrap", "root/.ssh",
	"run/*", "tmp/*", "var/tmp/*", "var/log/*",
	"var/cache/apt/*", "var/cache/debconf/*", "var/cache/ldconfig/*", "var/lib/apt/lists/*",
	// documentation
	"usr/share/doc/*", "usr/share/doc-base/*", "usr/share/info/*", "usr/share/lintian/*", "usr/share/locale/*", "usr/share/man/*",
	// Perl beyond perl-base, and other CNI plugins
	"usr/share/perl", "usr/lib/*/perl", "usr/lib/*/libperl.so*", debianCNI,
	// the shell of test images
	"usr/bin/busybox",
	// services that do not belong in a container; kind's own base image drops them too
	"etc/systemd/system/*.wants/*",
	"usr/lib/systemd/system/basic.target.wants/*",
	"usr/lib/systemd/system/local-fs.target.wants/*",
	"usr/lib/systemd/system/multi-user.target.wants/*",
	"usr/lib/systemd/system/sockets.target.wants/*udev*",
	"usr/lib/systemd/system/sockets.target.wants/*initctl*",
	"usr/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
}

// isDropped reports whether name or one of its parent directories matches dropped.
func isDropped(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		for _, pattern := range dropped {
			if ok, _ := path.Match(pattern, name); ok {
				return true
			}
		}
	}
	return false
}

// writeBase writes the tar of the base image to w: the root file system in raw without what a
// node does not need, and files, which replace those in raw. Equal input gives equal bytes.
func writeBase(w io.Writer, raw io.Reader, files []image.File) error {
	overlay := map[string]bool{}
	for _, f := range files {
		overlay[f.Path[1:]] = true
	}
	tw, tr := tar.NewWriter(w), tar.NewReader(raw)
	have := map[string]bool{}
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the root file system: %w", err)
		}
		name := clean(hdr.Name)
		if dir, plugin := path.Split(name); dir == debianCNI+"/" && slices.Contains(cniPlugins, plugin) {
			name = cniBin + "/" + plugin
		}
		if name == "" || overlay[name] || isDropped(name) {
			continue
		}
		if hdr.Typeflag == tar.TypeLink && isDropped(clean(hdr.Linkname)) {
			return fmt.Errorf("%s is a hard link to %s, which is left out", name, hdr.Linkname)
		}
		have[name] = true
		if err := copyEntry(tw, tr, hdr, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := image.WriteFiles(tw, files, have); err != nil {
		return err
	}
	return tw.Close()
}

// clean returns the name of a tar entry without a leading ./ or a trailing /.
func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// copyEntry copies an entry to tw, with the modification time that all files of an image have.
func copyEntry(tw *tar.Writer, tr io.Reader, hdr *tar.Header, name string) error {
	out := &tar.Header{
		Typeflag: hdr.Typeflag, Name: name, Linkname: hdr.Linkname, Size: hdr.Size, Mode: hdr.Mode,
		Uid: hdr.Uid, Gid: hdr.Gid, Devmajor: hdr.Devmajor, Devminor: hdr.Devminor,
		ModTime: image.Epoch, PAXRecords: hdr.PAXRecords, Format: tar.FormatPAX,
	}
	if hdr.Typeflag == tar.TypeDir {
		out.Name += "/"
	}
	// These records would override the fields of the header.
	for _, key := range []string{"mtime", "atime", "ctime", "path", "linkpath", "size", "uid", "gid"} {
		delete(out.PAXRecords, key)
	}
	if err := tw.WriteHeader(out); err != nil {
		return err
	}
	_, err := io.Copy(tw, tr)
	return err
}
