// Package tekton builds Tekton Pipelines from a tree and runs it on a cluster, without a
// container registry. Build compiles the programs and packs their images, Install applies the
// release's own manifests with those images and waits until the webhook serves.
package tekton

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
	"podenv.dev/test/images"
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

// manifests are the files in the release's config/ that TaskRuns and PipelineRuns need, in the
// order in which they are applied. Events, resolvers and the webhook's autoscaler are left out.
var manifests = []string{
	"100-namespace/*.yaml", "200-*.yaml", "201-*.yaml", "300-crds/*.yaml", "clusterrole-aggregate-*.yaml",
	"config-*.yaml", "500-webhooks.yaml", "controller.yaml", "webhook.yaml",
}

// managedBy marks the objects that podenv has applied, as opposed to those of another Tekton.
const (
	managedBy = "app.kubernetes.io/managed-by"
	podenv    = "podenv"
)

var (
	koImage    = regexp.MustCompile(`ko://github\.com/tektoncd/pipeline/cmd/([a-z]+)`)
	shellImage = regexp.MustCompile(`("-shell-image",\s*)"[^"]*"`)
	minVersion = regexp.MustCompile(`KUBERNETES_MIN_VERSION\s+value:\s*"?v?([0-9.]+)`)
)

// objects reads the manifests of the release, with its images. It also returns the minimum
// version of Kubernetes that they set, as in "1.28.0".
func objects(r *Release) (all []*unstructured.Unstructured, minKubernetes string, err error) {
	config := filepath.Join(r.Tree.Dir, "config")
	for _, pattern := range manifests {
		files, err := filepath.Glob(filepath.Join(config, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, "", err
		}
		if len(files) == 0 {
			return nil, "", fmt.Errorf("%s of %s has no config/%s: correct the list of manifests for this release", r.Tree.Series.Name, r.Version, pattern)
		}
		slices.Sort(files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, "", err
			}
			if m := minVersion.FindSubmatch(text); m != nil {
				minKubernetes = string(m[1])
			}
			found, err := parse(text, r.Images)
			if err != nil {
				return nil, "", fmt.Errorf("reading %s: %w", file, err)
			}
			all = append(all, found...)
		}
	}
	return all, minKubernetes, nil
}

// parse reads the objects of a manifest. built has the image of each program.
func parse(text []byte, built map[string]string) (all []*unstructured.Unstructured, err error) {
	text = koImage.ReplaceAllFunc(text, func(name []byte) []byte {
		program := string(koImage.FindSubmatch(name)[1])
		if built != nil && built[program] == "" {
			err = errors.Join(err, fmt.Errorf("it runs cmd/%s, which is not built: add it to the programs", program))
		}
		return []byte(built[program])
	})
	if err != nil {
		return nil, err
	}
	text = shellImage.ReplaceAll(text, []byte(`${1}"`+images.Busybox+`"`))
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		switch err := d.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(o.Object) == 0: // comments between two documents
			continue
		}
		o.SetLabels(labels.Merge(o.GetLabels(), labels.Set{managedBy: podenv}))
		all = append(all, o)
	}
}

// title names an object in messages.
func title(o *unstructured.Unstructured) string {
	return strings.ToLower(o.GetKind()) + " " + o.GetName()
}
