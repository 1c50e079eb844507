package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/publish"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/testimages"
)

// NodeName is the name of the published node image.
const NodeName = "node"

// PublishedNames are the names of all published images.
var PublishedNames = append(slices.Clone(build.ImageComponents), "etcd", "coredns", "pause", NodeName)

// PublishedPlatforms are the platforms that images can be published for.
var PublishedPlatforms = []string{"linux/amd64", "linux/arm64"}

// Published returns the images of the series in the form of registries: for each of platforms,
// such as "linux/amd64", those that kubeadm asks for, and the node image if this machine's is
// among them. With names, it returns and builds only these, "kube-proxy" for example.
func (p *Pipeline) Published(ctx context.Context, platforms, names []string) ([]publish.Image, attest.Provenance, error) {
	if err := p.Packages(ctx); err != nil {
		return nil, attest.Provenance{}, err
	}
	t, err := p.Tree(ctx, source.Options{}) // refuses edits, which nobody else could build
	if err != nil {
		return nil, attest.Provenance{}, err
	}
	version, err := build.Version(t)
	if err != nil {
		return nil, attest.Provenance{}, err
	}
	b := publishing{Pipeline: p, tree: t, version: version, names: names, images: map[string]publish.Image{}, annotations: map[string]string{
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"podenv.dev/release":                p.Series.Release,
		"podenv.dev/series":                 p.Series.Name,
	}}
	for _, platform := range platforms {
		if err := b.platform(ctx, platform); err != nil {
			return nil, attest.Provenance{}, err
		}
	}
	var all []publish.Image
	for _, i := range b.images {
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b publish.Image) int { return strings.Compare(a.Name, b.Name) })
	provenance, err := p.provenance(ctx, version)
	return all, provenance, err
}

// publishing collects images.
type publishing struct {
	*Pipeline
	tree        *source.Tree
	version     string
	names       []string
	annotations map[string]string
	images      map[string]publish.Image // by name
}

func (b *publishing) wants(name string) bool {
	return len(b.names) == 0 || slices.Contains(b.names, name)
}

func (b *publishing) platform(ctx context.Context, platform string) error {
	arch := strings.TrimPrefix(platform, "linux/")
	node := arch == runtime.GOARCH && b.wants(NodeName)
	components := slices.DeleteFunc(slices.Clone(build.ImageComponents), func(c string) bool { return !b.wants(c) })
	if node {
		components = build.Components
	}
	parts := nodeimage.Parts{Build: &build.Result{}}
	var err error
	if len(components) > 0 {
		s, end := b.step("go build for " + platform)
		parts.Build, err = build.BinariesFor(ctx, b.Layout, b.tree, arch, components, s)
		if err := end(err); err != nil {
			return err
		}
		if err := b.Images(ctx, parts.Build); err != nil {
			return err
		}
	}
	if len(components) < len(b.names) || len(b.names) == 0 || node {
		s, end := b.step("support images for " + platform)
		parts.Support, err = nodeimage.SupportImagesFor(ctx, b.Layout, b.Series, b.tree.Dir, arch, s)
		if err := end(err); err != nil {
			return err
		}
	}
	s, end := b.step("images for " + platform)
	return end(b.pack(ctx, platform, arch, parts, node, s))
}

// pack adds the images of parts for the platform to b.images.
func (b *publishing) pack(ctx context.Context, platform, arch string, parts nodeimage.Parts, node bool, step *progress.Step) error {
	dir := b.Layout.Cache("published")
	unlock, err := lockfile.Lock(ctx, filepath.Join(dir, "lock"), "that works in "+dir, step)
	if err != nil {
		return err
	}
	defer unlock()
	archives := slices.Clone(parts.Support)
	for _, c := range parts.Build.Images {
		archives = append(archives, c)
	}
	for _, archive := range archives {
		tags, err := image.Tags(archive)
		if err != nil {
			return err
		}
		repository, tag, _ := strings.Cut(tags[0], ":")
		// kubeadm takes all images from one folder of a registry that is not its default, CoreDNS too.
		name := path.Base(repository)
		if !strings.HasPrefix(repository, "registry.k8s.io/") || !b.wants(name) {
			continue
		}
		step.Now("packing %s", name)
		stored, err := image.FromArchive(archive, b.annotated(name))
		if err != nil {
			return err
		}
		var packages []string
		if name == "kube-proxy" {
			if packages, err = build.ProxyPackages(b.Layout); err != nil {
				return err
			}
		}
		img, err := stored.Write(ctx, dir, gobuild.Name(name, arch))
		if err != nil {
			return err
		}
		b.add(name, tag, platform, img, packages)
	}
	if !node {
		return nil
	}
	tests, err := testimages.Build(ctx, b.Layout, step)
	if err != nil {
		return err
	}
	step.Now("packing the node image")
	stored, err := nodeimage.Stored(ctx, b.Layout, parts, tests, b.annotated(NodeName), step)
	if err != nil {
		return err
	}
	packages, err := debian.AllPinned(b.Layout)
	if err != nil {
		return err
	}
	img, err := stored.Write(ctx, dir, NodeName)
	if err != nil {
		return err
	}
	b.add(NodeName, build.ImageTag(b.version), platform, img, packages)
	return nil
}

func (b *publishing) annotated(name string) map[string]string {
	all := map[string]string{"org.opencontainers.image.title": name}
	for key, value := range b.annotations {
		all[key] = value
	}
	return all
}

func (b *publishing) add(name, tag, platform string, img v1.Image, packages []string) {
	i, ok := b.images[name]
	if !ok {
		i = publish.Image{Name: name, Tag: tag, Platforms: map[string]v1.Image{}, Annotations: b.annotated(name), Debian: packages}
		b.images[name] = i
	}
	i.Platforms[platform] = img
}

// SameInputs returns an error if a build of p would not have the inputs of want.
func (p *Pipeline) SameInputs(ctx context.Context, want attest.Provenance) error {
	have, err := p.provenance(ctx, want.Version)
	if err != nil {
		return err
	}
	if want.Go != have.Go {
		return fmt.Errorf("it was built with %s, this podenv with %s: install that version of Go", want.Go, have.Go)
	}
	if len(want.Dependencies) == 0 || want.Dependencies[0].Digest["gitCommit"] == "" {
		return errors.New("its statement names no commit of this repository, because it was published with changes that were not committed: it cannot be built again")
	}
	if want, have := want.Dependencies[0].Digest["gitCommit"], have.Dependencies[0].Digest["gitCommit"]; want != have {
		return fmt.Errorf("it was built from commit %s, and this repository is at %s: run `git checkout %[1]s` first", want, cmp.Or(have, "no commit, with changes"))
	}
	return nil
}

// provenance says what the images are built from: the commit of this repository, unless it has
// changes, the lists of modules, the Debian packages and Go.
func (p *Pipeline) provenance(ctx context.Context, version string) (attest.Provenance, error) {
	out := attest.Provenance{Series: p.Series.Name, Release: p.Series.Release, Version: version, Stock: p.Stock, Go: runtime.Version()}
	repo := gitrepo.Repo{Dir: p.Layout.Root}
	changes, err := repo.Quiet(ctx, "status", "--porcelain")
	commit, errCommit := repo.Quiet(ctx, "rev-parse", "HEAD")
	if err := errors.Join(err, errCommit); err != nil {
		return out, fmt.Errorf("the commit of this repository: %w", err)
	}
	repository := attest.Dependency{URI: "git+https://podenv.dev"}
	if changes == "" {
		repository.Digest = map[string]string{"gitCommit": commit}
	}
	out.Dependencies = append(out.Dependencies, repository)
	for _, file := range []string{"go.sum", filepath.Join("patches", p.Series.Name, "go.sum")} {
		sum, err := digest.File(filepath.Join(p.Layout.Root, file))
		if err != nil {
			return out, err
		}
		out.Dependencies = append(out.Dependencies, attest.Dependency{URI: "git+https://podenv.dev#" + file, Digest: map[string]string{"sha256": sum}})
	}
	pinned, err := debian.AllPinned(p.Layout)
	for _, name := range pinned {
		out.Dependencies = append(out.Dependencies, attest.Dependency{URI: "pkg:deb/debian/" + strings.Replace(name, "=", "@", 1)})
	}
	return out, err
}
