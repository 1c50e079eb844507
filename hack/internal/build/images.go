package build

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// registry is where kubeadm expects the images of the control plane to come from.
// Nothing is pulled from there: nodes find the images already loaded.
const registry = "registry.k8s.io"

// imageFormat is part of every image's key. Count it up when the packing changes.
const imageFormat = "1"

// ImageName is the reference of component's image at version.
func ImageName(component, version string) string {
	return registry + "/" + component + ":" + ImageTag(version)
}

// Images packs the binaries of r that run as containers into images, as docker-archives,
// and enters them in r.Images. Those whose binary has not changed are kept.
func Images(ctx context.Context, l layout.Layout, r *Result, step *progress.Step) error {
	unlock, err := lock(ctx, r.Dir, step)
	if err != nil {
		return err
	}
	defer unlock()
	m := readManifest(r.Dir)
	made := make([]artifact, len(ImageComponents))
	bases := map[string]base{}
	for _, c := range ImageComponents {
		if r.Binaries[c] == "" {
			continue
		}
		if bases[c], err = baseOf(ctx, l, c, step); err != nil {
			return err
		}
	}
	var g errgroup.Group
	g.SetLimit(2) // each holds a compressed binary in memory
	fresh := 0
	for i, c := range ImageComponents {
		b, wanted := bases[c]
		if !wanted {
			continue
		}
		ref := ImageName(c, r.Version)
		key := keyOf(imageFormat, ref, m.Binaries[c].SHA256, b.key)
		file := filepath.Join(r.Dir, "images", c+".tar")
		r.Images[c] = file
		if m.Images[c].holds(file, key) {
			continue
		}
		fresh++
		g.Go(func() error {
			step.Now("packing %s", ref)
			if err := packComponent(ctx, c, ref, r.Binaries[c], b, file); err != nil {
				return err
			}
			var err error
			made[i], err = newArtifact(file, key, r.Version)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if fresh == 0 {
		step.Cached(ImageTag(r.Version) + " as packed before")
		return nil
	}
	for i, c := range ImageComponents {
		if made[i].Key != "" {
			m.Images[c] = made[i]
		}
	}
	return m.write(r.Dir)
}

// base is what a component's image holds besides the component.
type base struct {
	key   string // hash of what the files are made from
	files func(context.Context) ([]File, error)
}

// baseOf returns the base of component's image. Go programs without cgo need next to
// nothing, kube-proxy needs iptables and its like.
func baseOf(ctx context.Context, l layout.Layout, component string, step *progress.Step) (base, error) {
	if component == "kube-proxy" {
		return proxyBase(ctx, l, step)
	}
	return base{key: "minimal", files: func(context.Context) ([]File, error) { return MinimalFiles(), nil }}, nil
}

// MinimalFiles are what a static program may expect of a system: users, name service
// and /tmp.
func MinimalFiles() []File {
	text := func(path, content string) File { return File{Path: path, Mode: 0o644, Data: []byte(content)} }
	return []File{
		text("/etc/passwd", "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n"),
		text("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
		text("/etc/nsswitch.conf", "hosts: files dns\n"),
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}

func packComponent(ctx context.Context, component, ref, binary string, b base, out string) error {
	files, err := b.files(ctx)
	if err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	path := "/usr/local/bin/" + component
	// kubeadm's manifests name the command; the entrypoint serves who runs the image alone.
	img, err := newImage(v1.Config{Entrypoint: []string{path}}, files, []File{{Path: path, Mode: 0o755, Source: binary}})
	if err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	return writeArchive(img, ref, out)
}
