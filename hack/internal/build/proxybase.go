package build

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// proxyTools are the Debian packages that kube-proxy's modes run: iptables, ipvs and
// nftables.
var proxyTools = []string{"iptables", "conntrack", "kmod", "nftables", "ipset"}

// proxyLock pins proxyTools and all that they depend on.
//
//go:embed proxy.lock
var proxyLock []byte

// wrapper stands for iptables in the image, and picks the rules that the node uses.
const wrapper = "/usr/sbin/iptables-wrapper"

// proxyBase returns the files of kube-proxy's image besides the component, which are
// Debian's tools without Debian around them, and a digest of what they are made from.
func proxyBase(ctx context.Context, l layout.Layout, step *progress.Step) (key string, files func() ([]image.File, error), err error) {
	packages, err := debian.ParseLock(proxyLock)
	if err != nil {
		return "", nil, err
	}
	program := filepath.Join(l.Cache("programs"), "iptables-wrapper")
	if err := gobuild.Static(ctx, l, gobuild.Program{Package: "./hack/images/iptables-wrapper"}, program, step); err != nil {
		return "", nil, err
	}
	sum, err := digest.File(program)
	return digest.Of(string(proxyLock), sum), func() ([]image.File, error) {
		debs, err := debian.Fetch(ctx, l.Cache("debs"), packages, step)
		if err != nil {
			return nil, fmt.Errorf("the tools of kube-proxy (pinned in hack/internal/build/proxy.lock): %w", err)
		}
		files := append(proxyFiles(), image.File{Path: wrapper, Mode: 0o755, Source: program})
		for _, deb := range debs {
			packaged, err := debian.Files(ctx, deb)
			if err != nil {
				return nil, err
			}
			files = append(files, withoutUnneeded(packaged)...)
		}
		return files, nil
	}, err
}

// proxyFiles are what the packages' own installation would make.
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

// withoutUnneeded returns those of a package's files that a container can need, and the
// terms under which they are passed on. Directories come with what is in them.
func withoutUnneeded(files []image.File) []image.File {
	var kept []image.File
	for _, f := range files {
		if !f.Mode.IsDir() && needed(f.Path) {
			f.Mode = f.Mode.Perm()
			kept = append(kept, f)
		}
	}
	return kept
}

func needed(p string) bool {
	if strings.HasPrefix(p, "/usr/share/") {
		return path.Base(p) == "copyright"
	}
	for _, part := range []string{"/gconv/", "/systemd/", "/audit/", "/init.d/"} {
		if strings.Contains(p, part) {
			return false
		}
	}
	return true
}

// RefreshProxyLock pins kube-proxy's tools at the versions that the Debian archive has
// now. It says which file it wrote, and whether that changed anything.
func RefreshProxyLock(ctx context.Context, l layout.Layout) (file string, changed bool, err error) {
	file = filepath.Join(l.Root, "hack", "internal", "build", "proxy.lock")
	changed, err = debian.RefreshLock(ctx, file,
		"Debian packages of the kube-proxy image, with all that they depend on.\n"+
			"Written by build.RefreshProxyLock.", proxyTools...)
	return file, changed, err
}
