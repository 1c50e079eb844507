package build

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

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

// packComponent returns the archive, in the folder dir, of component's image with binary,
// and whether it was written. Go programs without cgo need almost no other files. kube-proxy
// needs iptables and similar tools.
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
