package build

import (
	"archive/tar"
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/debian"
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

// proxyBase is kube-proxy's base: Debian's tools without Debian around them.
func proxyBase(ctx context.Context, l layout.Layout, step *progress.Step) (base, error) {
	packages, err := debian.ParseLock(proxyLock)
	if err != nil {
		return base{}, err
	}
	program := filepath.Join(l.Cache("programs"), "iptables-wrapper")
	if err := StaticBinary(ctx, l, "./hack/images/iptables-wrapper", program, step); err != nil {
		return base{}, err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return base{}, err
	}
	return base{
		key: keyOf(string(proxyLock), string(content)),
		files: func(ctx context.Context) ([]File, error) {
			debs, err := debian.Fetch(ctx, l.Cache("debs"), packages, step)
			if err != nil {
				return nil, fmt.Errorf("the tools of kube-proxy (pinned in hack/internal/build/proxy.lock): %w", err)
			}
			files := append(proxyFiles(), File{Path: wrapper, Mode: 0o755, Source: program})
			for _, deb := range debs {
				entries, err := debian.Files(ctx, deb)
				if err != nil {
					return nil, err
				}
				files = append(files, packaged(entries)...)
			}
			return files, nil
		},
	}, nil
}

// proxyFiles are what the packages' own installation would make.
func proxyFiles() []File {
	files := MinimalFiles()
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		files = append(files, File{Path: "/" + dir, Link: "usr/" + dir})
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			files = append(files, File{Path: "/usr/sbin/" + family + suffix, Link: path.Base(wrapper)})
		}
	}
	return append(files, File{Path: "/run", Mode: fs.ModeDir | 0o755})
}

// packaged returns the files of a package that a container can need, and the terms
// under which they are passed on.
func packaged(entries []debian.File) []File {
	var files []File
	for _, e := range entries {
		if e.Type == tar.TypeDir || !needed(e.Path) {
			continue
		}
		files = append(files, File{Path: e.Path, Mode: fs.FileMode(e.Mode).Perm(), Data: e.Data, Link: e.Link})
	}
	return files
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
		"Debian packages of the kube-proxy image, with all that they depend on: name, version.\n"+
			"Written by build.RefreshProxyLock.", proxyTools...)
	return file, changed, err
}
