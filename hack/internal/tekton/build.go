package tekton

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
)

// Programs are the programs of Tekton that TaskRuns and PipelineRuns need.
var Programs = []string{"controller", "entrypoint", "nop", "sidecarlogresults", "webhook", "workingdirinit"}

// imageFormat is part of every image's key. Increment it when compiling or packing changes.
const imageFormat = "2"

// Release is a built release of Tekton.
type Release struct {
	// Version is the release with the number of patches: v1.10.0+podenv.9.
	Version string
	// Tree has the manifests.
	Tree *source.Tree
	// Images has the reference of each program's image, Archives its docker-archive.
	Images, Archives map[string]string
}

// Build compiles the programs of the tree t as it is, edits included, and packs each into an image.
// It does not run the go command if nothing changed. The images' tags have the hash of the tree's
// content, so that a Deployment of another build starts other pods.
func Build(ctx context.Context, l layout.Layout, t *source.Tree, step *progress.Step) (*Release, error) {
	dir := l.Build(t.Name())
	unlock, err := build.Lock(ctx, dir, step)
	if err != nil {
		return nil, err
	}
	defer unlock()
	content, err := build.TreeContent(ctx, t.Dir, filepath.Join(dir, "work"))
	if err != nil {
		return nil, err
	}
	r := &Release{Tree: t, Version: build.Version(t), Images: map[string]string{}, Archives: map[string]string{}}
	compiled := false
	for _, program := range Programs {
		ref := fmt.Sprintf("podenv.dev/tekton-%s:%s-%s", program, build.ImageTag(r.Version), content[:12])
		archive, _, err := image.Cached(filepath.Join(dir, "images"), program, digest.Of(imageFormat, ref), func(archive string) error {
			if !compiled {
				if err := compile(ctx, t.Dir, r.Version, filepath.Join(dir, "bin"), step); err != nil {
					return err
				}
				compiled = true
			}
			step.Now("packing %s", ref)
			return spec(ref, program, filepath.Join(dir, "bin", program)).Write(archive)
		})
		if err != nil {
			return nil, err
		}
		r.Images[program], r.Archives[program] = ref, archive
	}
	if !compiled {
		step.Cached(r.Version + " as built before")
	}
	return r, nil
}

// compile builds all programs into the folder bin, static and stripped. Runs and pods have the
// version in the annotation pipeline.tekton.dev/release.
func compile(ctx context.Context, tree, version, bin string, step *progress.Step) error {
	step.Now("compiling Tekton (minutes the first time)")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X knative.dev/pkg/changeset.rev=" + version, "-o", bin + string(filepath.Separator)}
	for _, program := range Programs {
		args = append(args, "./cmd/"+program)
	}
	err := run.Command(ctx, "go", args...).Dir(tree).
		Env("GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0", "GOOS=linux").Log(step.Log()).Run()
	if err != nil {
		return fmt.Errorf("compiling Tekton: %w", err)
	}
	return nil
}

// spec has the layout of Tekton's own images, because the controller sets the program's path.
func spec(ref, program, binary string) image.Spec {
	path := "/ko-app/" + program
	return image.Spec{
		Name:   ref,
		Base:   image.MinimalFiles(),
		Files:  []image.File{{Path: path, Mode: 0o755, Source: binary}},
		Config: v1.Config{Entrypoint: []string{path}},
	}
}
