package build

import (
	"cmp"
	"context"
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
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/gzip"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// ImageName is the reference of component's image at version, which kubeadm expects. Nothing is
// pulled from that registry: the images are loaded into the nodes.
func ImageName(component, version string) string {
	return "registry.k8s.io/" + component + ":" + ImageTag(version)
}

// Images packs the binaries of r that run as containers into images, as docker-archives,
// and sets r.Images. It keeps images whose binary has not changed.
func Images(ctx context.Context, l layout.Layout, r *Result, step *progress.Step) error {
	unlock, err := Lock(ctx, r.Dir, step)
	if err != nil {
		return err
	}
	defer unlock()
	packed := false
	for _, c := range ImageComponents {
		if r.Binaries[c] == "" {
			continue
		}
		file, written, err := packComponent(ctx, l, filepath.Join(r.Dir, "images"), r.Arch, c, r.Version, r.Binaries[c], step)
		if err != nil {
			return err
		}
		r.Images[c], packed = file, packed || written
	}
	if !packed {
		step.Cached(ImageTag(r.Version) + " as packed before")
	}
	return nil
}

// ComponentImage packs an executable of version, built anywhere, into the image of one of
// ImageComponents, and returns the path of the docker-archive. It keeps the last archive of each component.
func ComponentImage(ctx context.Context, l layout.Layout, component, version, binary string, step *progress.Step) (string, error) {
	file, packed, err := packComponent(ctx, l, l.Cache("componentimages"), runtime.GOARCH, component, version, binary, step)
	if err == nil && !packed {
		step.Cached(ImageName(component, version) + " as packed before")
	}
	return file, err
}

// packComponent returns the archive, in the folder dir, of component's image with binary, and whether it was
// written. Go programs without cgo need almost no other files. kube-proxy needs iptables and similar tools.
func packComponent(ctx context.Context, l layout.Layout, dir, arch, component, version, binary string, step *progress.Step) (file string, written bool, err error) {
	ref := ImageName(component, version)
	base := image.MinimalFiles()
	if component == "kube-proxy" {
		if base, err = proxyBase(ctx, l, arch, step); err != nil {
			return "", false, fmt.Errorf("image %s: %w", ref, err)
		}
	}
	step.Now("packing %s", ref)
	path := "/usr/local/bin/" + component
	return image.Spec{
		Name: ref, Architecture: arch,
		Base:  base,
		Files: []image.File{{Path: path, Mode: 0o755, Source: binary}},
		// kubeadm's manifests set the command. The entrypoint is for running the image directly.
		Config: v1.Config{Entrypoint: []string{path}},
	}.Cached(dir, component)
}

// proxyPackages are the Debian packages that kube-proxy's modes (iptables, ipvs and nftables)
// need, with all dependencies.
var proxyPackages = []string{
	"conntrack", "ipset", "iptables", "kmod", "nftables",
	"gcc-12-base", "libbsd0", "libc6", "libedit2", "libgcc-s1", "libgmp10", "libip4tc2", "libip6tc2",
	"libipset13", "libjansson4", "libkmod2", "liblzma5", "libmd0", "libmnl0", "libnetfilter-conntrack3",
	"libnfnetlink0", "libnftables1", "libnftnl11", "libssl3", "libtinfo6", "libxtables12", "libzstd1", "netbase",
}

// ProxyPackages returns the packages as name=version.
func ProxyPackages(l layout.Layout) ([]string, error) { return debian.Pinned(l, proxyPackages...) }

// wrapper replaces iptables in the image, and chooses the rule set that the node uses.
const wrapper = "/usr/sbin/iptables-wrapper"

// proxyBase returns the files of kube-proxy's image besides the component, which are some of
// Debian's tools without a Debian system.
func proxyBase(ctx context.Context, l layout.Layout, arch string, step *progress.Step) ([]image.File, error) {
	packaged, err := debian.Files(ctx, l, arch, step, proxyPackages...)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(l.Cache("programs"), gobuild.Name("iptables-wrapper", arch))
	if err := gobuild.Static(ctx, l, gobuild.Program{Package: "./hack/images/iptables-wrapper", Arch: arch}, program, step); err != nil {
		return nil, err
	}
	files := append(proxyFiles(), image.File{Path: wrapper, Mode: 0o755, Source: program})
	return append(files, runtimeFiles(packaged)...), nil
}

// proxyFiles are the files that installing the packages would create.
func proxyFiles() []image.File {
	files := image.MinimalFiles()
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		files = append(files, image.File{Path: "/" + dir, Link: "usr/" + dir})
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			files = append(files, image.File{Path: "/usr/sbin/" + family + suffix, Link: path.Base(wrapper)})
		}
	}
	return append(files, image.File{Path: "/run", Mode: fs.ModeDir | 0o755})
}

// runtimeFiles returns those of Debian's files that a container can need, and their copyright
// files, which have the terms of redistribution.
func runtimeFiles(files []image.File) []image.File {
	var kept []image.File
	for _, f := range files {
		unneeded := slices.ContainsFunc([]string{"/gconv/", "/systemd/", "/audit/", "/init.d/"}, func(part string) bool { return strings.Contains(f.Path, part) })
		if strings.HasPrefix(f.Path, "/usr/share/") {
			unneeded = path.Base(f.Path) != "copyright"
		}
		if !unneeded {
			f.Mode = f.Mode.Perm()
			kept = append(kept, f)
		}
	}
	return kept
}

// ServerTarball writes r into r.Dir as the server tarball of a Kubernetes release, under its usual name. `kind
// build node-image --type file` takes it, for example. r must have every component and image.
func ServerTarball(ctx context.Context, r *Result, step *progress.Step) (file string, err error) {
	if err := os.MkdirAll(filepath.Join(r.Dir, "work"), 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(filepath.Join(r.Dir, "work"), "server-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	step.Now("naming the images as a release does")
	files, err := serverFiles(r, scratch)
	if err != nil {
		return "", err
	}
	file = filepath.Join(r.Dir, "kubernetes-server-linux-"+runtime.GOARCH+".tar.gz")
	step.Now("packing %s", filepath.Base(file))
	return file, image.WriteFile(file, func(w io.Writer) error {
		zw, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return err
		}
		tar := image.Reader(image.WriteTar(files))
		defer tar.Close()
		defer context.AfterFunc(ctx, func() { tar.Close() })()
		if _, err := io.Copy(zw, tar); err != nil {
			return fmt.Errorf("server tarball: %w", cmp.Or(ctx.Err(), err))
		}
		return zw.Close()
	})
}

// serverFiles lists the tarball's files. It writes the images' archives to scratch.
func serverFiles(r *Result, scratch string) ([]image.File, error) {
	const bin = "/kubernetes/server/bin/"
	files := []image.File{{Path: "/kubernetes/version", Mode: 0o644, Data: []byte(r.Version + "\n")}}
	for _, c := range Components {
		if r.Binaries[c] == "" {
			return nil, fmt.Errorf("a server tarball needs %s: build all components first", c)
		}
		files = append(files, image.File{Path: bin + c, Mode: 0o755, Source: r.Binaries[c]})
	}
	for _, c := range ImageComponents {
		if r.Images[c] == "" {
			return nil, fmt.Errorf("a server tarball needs the image of %s: build the images first", c)
		}
		img, err := tarball.ImageFromPath(r.Images[c], nil)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", r.Images[c], err)
		}
		// A release's archives have the architecture in the repository name; kind removes it.
		archive := filepath.Join(scratch, c+".tar")
		write := func(w io.Writer) error { return image.Write(w, ImageName(c+"-"+runtime.GOARCH, r.Version), img) }
		if err := image.WriteFile(archive, write); err != nil {
			return nil, err
		}
		files = append(files,
			image.File{Path: bin + c + ".tar", Mode: 0o644, Source: archive},
			image.File{Path: bin + c + ".docker_tag", Mode: 0o644, Data: []byte(ImageTag(r.Version) + "\n")})
	}
	return files, nil
}
