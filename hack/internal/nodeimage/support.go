package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// podnetImage connects pods across nodes; files/kind/manifests/default-cni.yaml runs it.
const podnetImage = "podenv.dev/podnet:1"

// support is an image with one static binary.
type support struct {
	ref     string
	dir     string // folder of the Go module that it is built in, below the repository
	modfile string // takes the place of the folder's go.mod, if not empty: one for each version
	pkg     string // the main package
	binary  string // where the image has it
	config  v1.Config
}

// SupportImages returns the archives of the images that a cluster of the release in
// treeDir runs beside Kubernetes' own: etcd, CoreDNS, pause and podnet, at the
// versions that its kubeadm asks for, each compiled from Go modules and kept by
// content. It needs the tree's source, not its binaries.
func SupportImages(ctx context.Context, l layout.Layout, s series.Series, treeDir string, step *progress.Step) ([]string, error) {
	v, err := readVersions(treeDir)
	if err != nil {
		return nil, err
	}
	images := supportImages(v)
	tars := make([]string, len(images))
	g, gctx := errgroup.WithContext(ctx)
	for i, image := range images {
		g.Go(func() error {
			tar, err := image.build(gctx, l, step)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", image.ref, s.Release, err)
			}
			tars[i] = tar
			return nil
		})
	}
	return tars, g.Wait()
}

func supportImages(v versions) []support {
	return []support{
		{
			// kubeadm's manifest names the command, which is looked up in PATH
			ref: v.etcdImage(), dir: "hack/images/etcd", modfile: v.etcdModule() + ".mod", pkg: "go.etcd.io/etcd/server/v3", binary: "/usr/local/bin/etcd",
			config: v1.Config{Cmd: []string{"/usr/local/bin/etcd"}},
		},
		{
			ref: v.coreDNSImage(), dir: "hack/images/coredns", modfile: v.coreDNS + ".mod", pkg: ".", binary: "/coredns",
			config: v1.Config{Entrypoint: []string{"/coredns"}, WorkingDir: "/"},
		},
		{
			ref: v.pauseImage(), dir: ".", pkg: "./hack/images/pause", binary: "/pause",
			config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"},
		},
		{
			ref: podnetImage, dir: ".", pkg: "./hack/images/podnet", binary: "/podnet",
			config: v1.Config{Entrypoint: []string{"/podnet"}},
		},
	}
}

// build compiles and packs the image. The Go tool decides what must be compiled.
func (s support) build(ctx context.Context, l layout.Layout, step *progress.Step) (string, error) {
	module := filepath.Join(l.Root, s.dir)
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"}
	if s.modfile != "" {
		if _, err := os.Stat(filepath.Join(module, s.modfile)); errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("no file pins this version: make %s from the one beside it, with `go mod tidy -modfile=%s` there",
				filepath.Join(s.dir, s.modfile), s.modfile)
		}
		args = append(args, "-modfile="+s.modfile)
	}
	bin := filepath.Join(l.Cache("support"), "bin", strings.NewReplacer("/", "-", ":", "-").Replace(s.ref))
	if err := os.MkdirAll(filepath.Dir(bin), 0o755); err != nil {
		return "", err
	}
	step.Now("compiling %s", s.ref)
	err := run.Command(ctx, "go", append(args, "-o", bin, s.pkg)...).
		Dir(module).Env("GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0", "GOOS=linux").Log(step.Log()).Run()
	if err != nil {
		return "", err
	}
	content, err := digestFiles([]string{bin})
	if err != nil {
		return "", err
	}
	tar := filepath.Join(l.Cache("support"), digest(s.ref, s.binary, runtime.GOARCH, fmt.Sprint(s.config), content)+".tar")
	if _, err := os.Stat(tar); err == nil {
		return tar, nil
	}
	return tar, build.StaticImage(build.ImageSpec{
		Name:   s.ref,
		Files:  []build.File{{Path: s.binary, Mode: 0o755, Source: bin}},
		Config: s.config,
	}, tar)
}
