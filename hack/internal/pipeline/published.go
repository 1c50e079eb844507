package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/publish"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/testimages"
)

// nodeName is the name of the published node image.
const nodeName = "node"

// PublishedNames and PublishedPlatforms are those of all published images.
var (
	PublishedNames     = append(slices.Clone(build.ImageComponents), "etcd", "coredns", "pause", nodeName)
	PublishedPlatforms = []string{"linux/amd64", "linux/arm64"}
)

// Published returns the images of the series in the form of registries: for each of platforms
// those that kubeadm asks for, and the node image if this machine's platform is among them. It
// returns and builds only those called names, unless names is empty.
func (p *Pipeline) Published(ctx context.Context, platforms, names []string) ([]publish.Image, error) {
	if slices.Contains(names, nodeName) && !slices.Contains(platforms, Host) {
		return nil, fmt.Errorf("this machine builds the node image for %s alone: run this on a machine of %s", Host, strings.Join(platforms, ", "))
	}
	t, err := p.Tree(ctx, source.Options{}) // refuses edits, which nobody else could build
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = PublishedNames
	}
	images := map[string]publish.Image{}
	for _, platform := range platforms {
		arch := strings.TrimPrefix(platform, "linux/")
		names := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == nodeName && platform != Host })
		node := slices.Contains(names, nodeName)
		components := slices.DeleteFunc(slices.Clone(build.ImageComponents), func(c string) bool { return !slices.Contains(names, c) })
		support := node || len(components) < len(names)
		if node {
			components = build.Components
		}
		parts := nodeimage.Parts{Build: &build.Result{}}
		if len(components) > 0 {
			if parts.Build, err = p.Binaries(ctx, t, platform, components); err != nil {
				return nil, err
			}
			if err := p.Images(ctx, parts.Build); err != nil {
				return nil, err
			}
		}
		if support {
			s, end := p.step("support images for " + platform)
			parts.Support, err = nodeimage.SupportImages(ctx, p.Layout, p.Series, t.Dir, arch, s)
			if err := end(err); err != nil {
				return nil, err
			}
		}
		s, end := p.step("images for " + platform)
		if err := end(p.store(ctx, images, platform, names, parts, s)); err != nil {
			return nil, err
		}
	}
	var all []publish.Image
	for _, name := range slices.Sorted(maps.Keys(images)) {
		all = append(all, images[name])
	}
	return all, nil
}

// store adds the images of parts that are called names to images.
func (p *Pipeline) store(ctx context.Context, images map[string]publish.Image, platform string, names []string, parts nodeimage.Parts, step *progress.Step) error {
	dir := p.Layout.Cache("published")
	unlock, err := lockfile.Lock(ctx, filepath.Join(dir, "lock"), "that works in "+dir, step)
	if err != nil {
		return err
	}
	defer unlock()
	add := func(name, tag string, packages []string, s image.Stored, err error) error {
		if err != nil {
			return err
		}
		step.Now("packing %s", name)
		s.Annotations = map[string]string{ // nothing of the series: several have the same pause, etcd and CoreDNS
			"org.opencontainers.image.title": name, "org.opencontainers.image.version": tag, "org.opencontainers.image.licenses": "Apache-2.0",
		}
		img, err := s.Write(ctx, dir, gobuild.Name(name, s.Architecture))
		if images[name].Name == "" {
			images[name] = publish.Image{Name: name, Tag: tag, Platforms: map[string]v1.Image{}, Annotations: s.Annotations, Debian: packages}
		}
		images[name].Platforms[platform] = img
		return err
	}
	for _, archive := range slices.Concat(parts.Support, slices.Sorted(maps.Values(parts.Build.Images))) {
		tags, err := image.Tags(archive)
		if err != nil {
			return err
		}
		repository, tag, _ := strings.Cut(tags[0], ":")
		// kubeadm takes all images from one folder of a registry that is not its default, CoreDNS too.
		name := path.Base(repository)
		if !slices.Contains(names, name) {
			continue
		}
		var packages []string
		if name == "kube-proxy" {
			if packages, err = build.ProxyPackages(p.Layout); err != nil {
				return err
			}
		}
		s, err := image.FromArchive(archive)
		if err := add(name, tag, packages, s, err); err != nil {
			return err
		}
	}
	if !slices.Contains(names, nodeName) {
		return nil
	}
	tests, err := testimages.Build(ctx, p.Layout, step)
	if err != nil {
		return err
	}
	packages, err := debian.Pinned(p.Layout)
	if err != nil {
		return err
	}
	s, err := nodeimage.Stored(ctx, p.Layout, parts, tests, step)
	return add(nodeName, build.ImageTag(parts.Build.Version), packages, s, err)
}

// Provenance says what the images of Published are built from.
func (p *Pipeline) Provenance(ctx context.Context) (attest.Provenance, error) {
	version := build.Version(&source.Tree{Series: p.Series, Stock: p.Stock})
	out := attest.Provenance{Series: p.Series.Name, Release: p.Series.Release, Version: version, Stock: p.Stock, Go: runtime.Version()}
	repo := gitrepo.Repo{Dir: p.Layout.Root}
	changes, err := repo.Quiet(ctx, "status", "--porcelain")
	commit, errCommit := repo.Quiet(ctx, "rev-parse", "HEAD")
	if err := errors.Join(err, errCommit); err != nil {
		return out, fmt.Errorf("the commit of this repository: %w", err)
	}
	if changes == "" {
		out.Commit = commit
		out.Dependencies = append(out.Dependencies, attest.Resource{URI: "git+https://podenv.dev", Digest: map[string]string{"gitCommit": commit}})
	}
	out.Dependencies = append(out.Dependencies, attest.Resource{URI: "pkg:golang/k8s.io/kubernetes@" + p.Series.Release})
	pinned, err := debian.Pinned(p.Layout)
	for _, name := range pinned {
		out.Dependencies = append(out.Dependencies, attest.Resource{URI: "pkg:deb/debian/" + strings.NewReplacer("=", "@", "+", "%2B").Replace(name)})
	}
	return out, err
}

// SameInputs returns an error if a build of p would not have the inputs of want.
func (p *Pipeline) SameInputs(ctx context.Context, want attest.Provenance) error {
	have, err := p.Provenance(ctx)
	switch {
	case err != nil:
		return err
	case want.Go != have.Go:
		return fmt.Errorf("it was built with %s, this podenv with %s: install that version of Go", want.Go, have.Go)
	case want.Commit == "":
		return errors.New("it was published from a repository with changes that were not committed: nobody can build it again")
	case want.Commit != have.Commit:
		return fmt.Errorf("it was built from commit %s, and this repository is at %s: run `git checkout %[1]s` first", want.Commit, cmp.Or(have.Commit, "no commit, with changes"))
	case want.Version != have.Version:
		return fmt.Errorf("its statement is wrong: it names %s, and that commit builds %s", want.Version, have.Version)
	}
	return nil
}

// PublishedNode returns the published node image ref, which is pulled unless the engine has it. p
// becomes the pipeline of its series.
func (p *Pipeline) PublishedNode(ctx context.Context, ref string) (*Result, error) {
	e, err := p.Engine(ctx)
	if err != nil {
		return nil, err
	}
	s, end := p.step("node image")
	version, err := nodeimage.Pull(ctx, e, ref, s)
	if err := end(err); err != nil {
		return nil, err
	}
	p.Stock = !strings.Contains(version, "+podenv.")
	if p.Series, err = series.Load(p.Layout, semver.MajorMinor(version)); err != nil {
		return nil, fmt.Errorf("the gates of %s: %w", ref, err)
	}
	// It has the images that test pods run.
	return &Result{Engine: e, Image: ref, Parts: nodeimage.Parts{Build: &build.Result{Version: version}}}, nil
}

// Verifier compiles what checks images on nodes for signatures of the public key in the file key.
func (p *Pipeline) Verifier(ctx context.Context, key string) (*cluster.Verifier, error) {
	v := &cluster.Verifier{Program: filepath.Join(p.Layout.Cache("programs"), "image-verifier"), Key: key}
	s, end := p.step("image verifier")
	return v, end(gobuild.Static(ctx, p.Layout, gobuild.Program{Package: "./hack/images/image-verifier"}, v.Program, s))
}

// Rebuild is Published in a copy of this repository in another folder, with nothing that an earlier
// build has left: it assembles the tree again, installs the Debian packages, and compiles everything
// with an empty cache of Go and another number of processors. It calls use with the images.
func (p *Pipeline) Rebuild(ctx context.Context, platforms, names []string, use func([]publish.Image) error) error {
	dir, err := elsewhere(ctx, p.Layout)
	if err != nil {
		return fmt.Errorf("copying the repository: %w", err)
	}
	defer os.RemoveAll(dir)
	for key, value := range map[string]string{
		"GOCACHE": filepath.Join(dir, "_output", "gocache"), "GOMAXPROCS": strconv.Itoa(runtime.NumCPU() + 1),
	} {
		if err := os.Setenv(key, value); err != nil { // this process builds nothing else
			return err
		}
	}
	again := *p
	again.Layout = layout.Layout{Root: dir}
	images, err := again.Published(ctx, platforms, names)
	if err != nil {
		return fmt.Errorf("building again: %w", err)
	}
	return use(images)
}

// elsewhere copies the repository, edits included, without what git ignores.
func elsewhere(ctx context.Context, l layout.Layout) (dir string, err error) {
	parent := filepath.Join(l.Output(), "verify")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(parent, "build-"); err != nil {
		return "", err
	}
	err = run.Command(ctx, "bash", "-euo", "pipefail", "-c",
		`git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory="$1"`, "bash", dir).Dir(l.Root).Run()
	if err != nil {
		os.RemoveAll(dir)
	}
	return dir, err
}
