package nodeimage

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
)

// archiveDir is where a stored node image has the archives that import-images.sh imports.
const archiveDir = "/kind/images/"

// Stored returns the node image of p, with the images of testArchives, in the form of registries.
// It is the same each time, which Build's is not: containerd's store, which Build keeps so that a
// cluster starts sooner, has times. A node of this image imports the images at its first start.
// p.Base is not used, and no container engine is needed.
func Stored(ctx context.Context, l layout.Layout, p Parts, testArchives []string, step *progress.Step) (image.Stored, error) {
	key, base, err := baseLayer(ctx, l, step)
	if err != nil {
		return image.Stored{}, err
	}
	files, err := nodeFiles(p.Build)
	if err != nil {
		return image.Stored{}, err
	}
	archives := slices.Concat(p.Support, slices.Sorted(maps.Values(p.Build.Images)), testArchives)
	if err := checkImages(ctx, p.Build, archives); err != nil {
		return image.Stored{}, err
	}
	content, err := image.FilesKey(files)
	config := nodeConfig
	config.Labels = map[string]string{VersionLabel: p.Build.Version}
	s := image.Stored{
		Architecture: runtime.GOARCH, Config: config,
		Layers: []func(io.Writer) error{base, image.WriteTar(files)},
	}
	parts := []string{key, content}
	for _, archive := range archives { // a layer each, so that only what has changed is uploaded
		parts = append(parts, filepath.Base(archive))
		file := image.File{Path: archiveDir + filepath.Base(archive), Mode: 0o644, Source: archive}
		s.Layers = append(s.Layers, image.WriteTar([]image.File{file}))
	}
	s.Key = digest.Of(parts...)
	return s, err
}

// Pull lets the engine pull the published node image ref, unless it has it, and returns the version
// of Kubernetes in it.
func Pull(ctx context.Context, e *engine.Engine, ref string, step *progress.Step) (version string, err error) {
	if !hasImage(ctx, e, ref) {
		step.Now("pulling %s", ref)
		if err := e.Docker(ctx, "pull", ref).Log(step.Log()).Run(); err != nil {
			return "", remedy.New(fmt.Errorf("pulling %s: %w", ref, err), "check the name and `docker login`; Docker takes a registry without TLS only on localhost, or as one of its insecure-registries")
		}
	}
	out, err := e.Docker(ctx, "image", "inspect", "--format", `{{.Architecture}} {{index .Config.Labels "`+VersionLabel+`"}}`, ref).Output()
	if err != nil {
		return "", err
	}
	arch, version, _ := strings.Cut(out, " ")
	switch {
	case version == "":
		return "", fmt.Errorf("%s: no node image of podenv for this machine: it lacks the label %s; `podenv publish` makes such images", ref, VersionLabel)
	case arch != runtime.GOARCH:
		return "", fmt.Errorf("%s: no node image of podenv for this machine: it is for %s, and this is %s", ref, arch, runtime.GOARCH)
	}
	return version, nil
}
