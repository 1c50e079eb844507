package build

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

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
