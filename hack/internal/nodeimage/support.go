package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// support is an image with one static binary.
type support struct {
	ref     string
	program gobuild.Program
	binary  string // its path in the image
	config  v1.Config
}

// SupportImages returns the archives of the images that a cluster of the release in treeDir runs besides
// Kubernetes' own: etcd, CoreDNS and pause, at the versions that its kubeadm asks for, and for this machine's
// architecture, which a node image has, podnet and the provisioner of the default StorageClass. They are
// compiled from Go modules and cached. SupportImages needs the source in the tree, not its binaries.
func SupportImages(ctx context.Context, l layout.Layout, s series.Series, treeDir, arch string, step *progress.Step) ([]string, error) {
	v, err := readVersions(treeDir)
	if err != nil {
		return nil, err
	}
	var tars []string
	add := func(images ...support) error {
		for _, image := range images {
			tar, err := image.build(ctx, l, arch, step)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", image.ref, s.Release, err)
			}
			tars = append(tars, tar)
		}
		return nil
	}
	if err := add(supportImages(v)...); err != nil || arch != runtime.GOARCH {
		return tars, err
	}
	kind, err := moduleDir(ctx, l, kindModule)
	if err != nil {
		return nil, fmt.Errorf("finding kind's StorageClass: %w", err)
	}
	storage, err := storageIn(filepath.Join(kind, storageSource))
	if err != nil {
		return nil, err
	}
	if err := add(podnet, storage.support()); err != nil {
		return nil, err
	}
	helper, err := storage.helperImage(ctx, l, step)
	return append(tars, helper), err
}

// supportImages are the images that kubeadm asks for, etcd's first.
func supportImages(v versions) []support {
	return []support{
		{
			// kubeadm's manifest names the command, which is looked up in PATH
			ref:     v.etcdImage(),
			program: gobuild.Program{Dir: "hack/images/etcd", ModFile: v.etcdModule() + ".mod", Package: "go.etcd.io/etcd/server/v3"},
			binary:  "/usr/local/bin/etcd", config: v1.Config{Cmd: []string{"/usr/local/bin/etcd"}},
		},
		{
			ref:     v.coreDNSImage(),
			program: gobuild.Program{Dir: "hack/images/coredns", ModFile: v.coreDNS + ".mod", Package: "."},
			binary:  "/coredns", config: v1.Config{Entrypoint: []string{"/coredns"}, WorkingDir: "/"},
		},
		{
			ref: v.pauseImage(), program: gobuild.Program{Package: "./hack/images/pause"},
			binary: "/pause", config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"},
		},
	}
}

// podnet connects pods across nodes; files/kind/manifests/default-cni.yaml runs it.
var podnet = support{
	ref: "podenv.dev/podnet:1", program: gobuild.Program{Package: "./hack/images/podnet"},
	binary: "/podnet", config: v1.Config{Entrypoint: []string{"/podnet"}},
}

// Etcd compiles the etcd of the release in treeDir for this machine, and returns the program.
func Etcd(ctx context.Context, l layout.Layout, treeDir string, step *progress.Step) (string, error) {
	v, err := readVersions(treeDir)
	if err != nil {
		return "", err
	}
	return supportImages(v)[0].compile(ctx, l, runtime.GOARCH, step)
}

// compile compiles the program, and returns it. The go command decides what must be compiled.
func (s support) compile(ctx context.Context, l layout.Layout, arch string, step *progress.Step) (string, error) {
	if modFile := filepath.Join(s.program.Dir, s.program.ModFile); s.program.ModFile != "" {
		if _, err := os.Stat(filepath.Join(l.Root, modFile)); errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("no file pins this version: make %s from the one beside it, with `go mod tidy -modfile=%s` there", modFile, s.program.ModFile)
		}
	}
	s.program.Arch = arch
	name := strings.NewReplacer("/", "-", ":", "-").Replace(s.ref)
	bin := filepath.Join(l.Cache("support"), gobuild.Name("bin", arch), name)
	step.Now("compiling %s", s.ref)
	return bin, gobuild.Static(ctx, l, s.program, bin, step)
}

// build compiles and packs the image.
func (s support) build(ctx context.Context, l layout.Layout, arch string, step *progress.Step) (string, error) {
	bin, err := s.compile(ctx, l, arch, step)
	if err != nil {
		return "", err
	}
	archive, _, err := image.Spec{
		Name: s.ref, Architecture: arch, Files: []image.File{{Path: s.binary, Mode: 0o755, Source: bin}}, Config: s.config,
	}.Cached(l.Cache("support"), gobuild.Name(filepath.Base(bin), arch))
	return archive, err
}

// kubeadmConstants is the file with the versions of a release's support images.
const kubeadmConstants = "cmd/kubeadm/app/constants/constants.go"

// versions are the tags of the images that a control plane runs besides Kubernetes' own.
type versions struct {
	etcd, coreDNS, pause string
}

var versionConstant = regexp.MustCompile(`(?m)^\s*(?:const )?(DefaultEtcdVersion|CoreDNSVersion|PauseVersion)\s*=\s*"([^"]+)"`)

// readVersions reads the versions from the source of kubeadm in treeDir, because they are
// needed before kubeadm is compiled.
func readVersions(treeDir string) (versions, error) {
	file := filepath.Join(treeDir, kubeadmConstants)
	text, err := os.ReadFile(file)
	if err != nil {
		return versions{}, fmt.Errorf("reading which images kubeadm asks for: %w", err)
	}
	found := map[string]string{}
	for _, m := range versionConstant.FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	v := versions{etcd: found["DefaultEtcdVersion"], coreDNS: found["CoreDNSVersion"], pause: found["PauseVersion"]}
	if v.etcd == "" || v.coreDNS == "" || v.pause == "" {
		return versions{}, fmt.Errorf("%s: want DefaultEtcdVersion, CoreDNSVersion and PauseVersion, found %q, %q, %q", file, v.etcd, v.coreDNS, v.pause)
	}
	return v, nil
}

// The images have the names that kubeadm gives them by default.
func (v versions) etcdImage() string    { return "registry.k8s.io/etcd:" + v.etcd }
func (v versions) coreDNSImage() string { return "registry.k8s.io/coredns/coredns:" + v.coreDNS }
func (v versions) pauseImage() string   { return "registry.k8s.io/pause:" + v.pause }

// etcdModule returns the version of etcd's module: the "-0" of an image counts its builds.
func (v versions) etcdModule() string {
	version, _, _ := strings.Cut(v.etcd, "-")
	return "v" + version
}
