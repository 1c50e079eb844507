// Package packages makes the packages of what nodes run outside containers, for dpkg and rpm.
package packages

import (
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// Components are the programs that have packages.
var Components = []string{"kubelet", "kubeadm", "kubectl"}

// Sums is the name of the file with the digests of the packages, as sha256sum reads it.
const Sums = "SHA256SUMS"

// formats are the packagers, with the extension of their packages.
var formats = map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM}

// summaries are the first lines of the descriptions.
var summaries = map[string]string{
	"kubelet": "Node agent of Kubernetes",
	"kubeadm": "Sets up and upgrades clusters of Kubernetes",
	"kubectl": "Command line of Kubernetes",
}

// depends and recommends are relations to other packages; see docs/packages.md.
var (
	depends = map[string][]string{
		"kubelet.deb": {"mount", "util-linux"}, "kubelet.rpm": {"util-linux"},
		"kubeadm.deb": {"mount", "util-linux"}, "kubeadm.rpm": {"util-linux"},
	}
	recommends = map[string][]string{
		"kubelet.deb": {"iptables", "kubernetes-cni | containernetworking-plugins"}, "kubelet.rpm": {"iptables", "kubernetes-cni"},
		"kubeadm.deb": {"conntrack", "cri-tools", "ethtool", "iproute2", "iptables", "kubelet"},
		"kubeadm.rpm": {"conntrack-tools", "cri-tools", "ethtool", "iproute", "iptables", "kubelet"},
	}
)

// Build writes the packages of builds, dated like their release, to the folder dir, and their
// digests to dir/SHA256SUMS, last. Equal programs give equal packages. It returns the paths.
func Build(ctx context.Context, l layout.Layout, builds []*build.Result, date time.Time, dir string, step *progress.Step) ([]string, error) {
	if err := os.Remove(filepath.Join(dir, Sums)); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var paths []string
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for _, b := range builds {
		for _, component := range Components {
			for _, format := range slices.Sorted(maps.Keys(formats)) {
				info := describe(l, b, component, format, date)
				path := filepath.Join(dir, formats[format].ConventionalFileName(info))
				paths = append(paths, path)
				g.Go(func() error {
					if gctx.Err() != nil { // one takes a second or two
						return gctx.Err()
					}
					step.Now("packing %s", filepath.Base(path))
					return image.WriteFile(path, func(w io.Writer) error { return formats[format].Package(info, w) })
				})
			}
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.Sort(paths)
	sums, err := digest.Files(paths...)
	if err != nil {
		return nil, err
	}
	for i, path := range paths {
		sums[i] += "  " + filepath.Base(path) + "\n"
	}
	return paths, renameio.WriteFile(filepath.Join(dir, Sums), []byte(strings.Join(sums, "")), 0o644)
}

// describe describes a package. Its version follows that of the same release on pkgs.k8s.io,
// such as 1.33.13-1.1, and precedes that of the next.
func describe(l layout.Layout, b *build.Result, component, format string, date time.Time) *nfpm.Info {
	release, metadata, _ := strings.Cut(strings.TrimPrefix(b.Version, "v"), "+")
	own := filepath.Join(l.Root, "hack/internal/packages/files")
	file := func(source, destination string, mode fs.FileMode) *files.Content {
		return &files.Content{Source: source, Destination: destination, FileInfo: &files.ContentFileInfo{Mode: mode}}
	}
	folder := func(path string) *files.Content { return &files.Content{Destination: path, Type: files.TypeDir} }
	o := nfpm.Overridables{
		Depends: depends[component+"."+format], Recommends: recommends[component+"."+format],
		Contents: files.Contents{
			file(b.Binaries[component], "/usr/bin/"+component, 0o755),
			file(filepath.Join(l.Root, "LICENSE"), "/usr/share/doc/"+component+"/copyright", 0o644),
		},
	}
	o.RPM.BuildHost, o.RPM.Summary = "podenv.dev", summaries[component]
	switch component {
	case "kubelet":
		environment := file(filepath.Join(own, "kubelet.env"), map[string]string{"deb": "/etc/default/kubelet", "rpm": "/etc/sysconfig/kubelet"}[format], 0o644)
		environment.Type = files.TypeConfigNoReplace
		o.Contents = append(o.Contents, environment, folder("/etc/kubernetes/manifests"), folder("/var/lib/kubelet"),
			file(filepath.Join(own, "kubelet.service"), "/usr/lib/systemd/system/kubelet.service", 0o644))
		o.Scripts = nfpm.Scripts{PostInstall: filepath.Join(own, "installed.sh"), PreRemove: filepath.Join(own, "removing.sh"), PostRemove: filepath.Join(own, "reload.sh")}
	case "kubeadm":
		o.Contents = append(o.Contents, file(filepath.Join(own, "10-kubeadm.conf"), "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", 0o644))
		o.Scripts = nfpm.Scripts{PostInstall: filepath.Join(own, "reload.sh"), PostRemove: filepath.Join(own, "reload.sh")}
	}
	return nfpm.WithDefaults(&nfpm.Info{
		Name: component, Arch: b.Arch, Version: release, VersionMetadata: metadata, VersionSchema: "none", Release: "1",
		Section: "admin", Priority: "optional", Maintainer: "podenv <https://podenv.dev>", Homepage: "https://kubernetes.io", License: "Apache-2.0",
		Description: summaries[component] + "\n" + b.Version + ", built by podenv.", MTime: date, DisableGlobbing: true, Overridables: o,
	})
}
