// Package nodeimage builds a kind node image without any container registry: a
// Debian root file system, the files of kind's own base image, the binaries of a
// release, and every container image that its control plane runs.
//
//	debian.RootFS ──────────────────┐
//	module sigs.k8s.io/kind ────────┤
//	containerd and runc ────────────┼─► Base ──┐
//	files/ ─────────────────────────┘          ├─► Build ─► podenv/node:<tag>-<hash>
//	hack/images/* ─────► SupportImages ────────┤
//	build.Result (binaries, images) ───────────┘
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

	"k8s.io/apimachinery/pkg/util/sets"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/run"
)

// MaxSize is the maximum size of an unpacked node image, in bytes.
const MaxSize = 1_000_000_000

// VersionLabel is the label of a node image that holds its Kubernetes version.
const VersionLabel = "dev.podenv.kubernetes-version"

// nodeBinaries are the components that a node runs outside of containers.
var nodeBinaries = []string{"kubeadm", "kubectl", "kubelet"}

// Parts are what a node image is built from.
type Parts struct {
	Base    string   // the result of Base
	Support []string // the result of SupportImages
	// Build must have all Components, with their images.
	Build *build.Result
}

// Build builds a kind node image. It returns the reference, podenv/node:<tag>-<hash>, which has a
// hash of the content. An image that exists is not built again.
func Build(ctx context.Context, l layout.Layout, e *engine.Engine, p Parts, step *progress.Step) (string, error) {
	r := p.Build
	archives := slices.Concat(p.Support, slices.Sorted(maps.Values(r.Images)))
	files, err := nodeFiles(r)
	if err != nil {
		return "", err
	}
	ref, err := reference(p.Base, r.Version, files, archives)
	if err != nil {
		return "", err
	}
	dir := l.Cache("nodeimage")
	unlock, err := lockfile.Lock(ctx, filepath.Join(dir, "lock"), "that works in "+dir, step)
	if err != nil {
		return "", err
	}
	defer unlock()
	if hasImage(ctx, e, ref) {
		step.Cached(ref)
		return ref, nil
	}
	if err := checkImages(ctx, r, archives); err != nil {
		return "", err
	}
	if err := assemble(ctx, e, p.Base, ref, r.Version, files, archives, step); err != nil {
		return "", fmt.Errorf("building %s: %w", ref, err)
	}
	prune(ctx, e, r.Version)
	return ref, nil
}

// prune removes the node images of version but the last three: each takes most of a gigabyte, and
// can be built again. Switching between two states of a tree does not build them again. Docker
// does not remove an image that a cluster uses.
func prune(ctx context.Context, e *engine.Engine, version string) {
	// Docker lists the newest first.
	out, err := e.Docker(ctx, "image", "ls", "--filter", "label="+VersionLabel+"="+version, "--format", "{{.Repository}}:{{.Tag}}", "podenv/node").Output()
	if err != nil {
		return
	}
	refs := strings.Fields(out)
	for _, ref := range refs[min(3, len(refs)):] {
		_ = e.Docker(ctx, "image", "rm", ref).Run()
	}
}

// nodeFiles returns the files that the node image adds to the base image.
func nodeFiles(r *build.Result) ([]image.File, error) {
	v, err := readVersions(r.Tree.Dir)
	if err != nil {
		return nil, err
	}
	files := []image.File{
		{Path: containerdConfigFile, Mode: 0o644, Data: containerdConfig(v.pauseImage())},
		// kind reads the version from it
		{Path: "/kind/version", Mode: 0o644, Data: []byte(r.Version)},
	}
	for _, component := range nodeBinaries {
		bin := r.Binaries[component]
		if bin == "" {
			return nil, fmt.Errorf("%s is missing: build all components first", component)
		}
		files = append(files, image.File{Path: "/usr/bin/" + component, Mode: 0o755, Source: bin})
	}
	return files, nil
}

// checkImages returns an error unless archives have all the images that the built kubeadm
// will run: a cluster would fail on a missing one much later.
func checkImages(ctx context.Context, r *build.Result, archives []string) error {
	out, err := run.Command(ctx, r.Binaries["kubeadm"], "config", "images", "list", "--kubernetes-version", r.Version).Output()
	if err != nil {
		return err
	}
	have := sets.New[string]()
	for _, archive := range archives {
		tags, err := image.Tags(archive)
		if err != nil {
			return err
		}
		have.Insert(tags...)
	}
	if missing := slices.DeleteFunc(strings.Fields(out), have.Has); len(missing) > 0 {
		return fmt.Errorf("kubeadm %s asks for %s, which was not built; built are %s", r.Version,
			strings.Join(missing, ", "), strings.Join(sets.List(have), ", "))
	}
	return nil
}

// reference returns the image's name, with a hash of its content and of the scripts that build it.
// The names of the archives have hashes of their content, see image.Cached.
func reference(base, version string, files []image.File, archives []string) (string, error) {
	content, err := image.FilesKey(files)
	if err != nil {
		return "", err
	}
	parts := []string{startContainerd, finishImport, base, version, content}
	for _, archive := range archives {
		parts = append(parts, filepath.Base(archive))
	}
	return fmt.Sprintf("podenv/node:%s-%s", build.ImageTag(version), digest.Of(parts...)[:12]), nil
}

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
			return "", remedy.New(fmt.Errorf("pulling %s: %w", ref, err), "check the name, `docker login` and, with `podenv verify`, that it is for this machine's architecture; Docker takes a registry without TLS only on localhost, or as one of its insecure-registries")
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
