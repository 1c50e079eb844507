// Package pipeline runs the steps from a release tag to a running cluster. Steps that do not
// depend on each other run at the same time.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/doctor"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/testimages"
)

// packages are the Debian packages with the steps' tools. engine.Ensure installs those of the container engine.
var packages = []string{"protobuf-compiler", "mmdebstrap"}

// Host is the platform of this machine.
const Host = "linux/" + runtime.GOARCH

// Pipeline runs the steps for one series.
type Pipeline struct {
	Layout   layout.Layout
	Series   series.Series
	Reporter *progress.Reporter
	// Stock builds the release without the patches.
	Stock bool
	// Verbosity is klog's -v on the clusters; 0 means Kubernetes' default.
	Verbosity int
	Temporary bool // of the clusters; see cluster.Config

	packaged bool // see Packages
}

// Result is the output of NodeImage.
type Result struct {
	Engine     *engine.Engine
	Tree       *source.Tree
	Image      string   // the reference of the node image
	TestImages []string // archives of the images that test pods run
	nodeimage.Parts
}

// step starts a step. The caller ends it with end, which adds the step's name to an error.
func (p *Pipeline) step(name string) (s *progress.Step, end func(error) error) {
	s = p.Reporter.Step(name)
	return s, func(err error) error {
		if err := s.End(err); err != nil {
			return remedy.ExplainDisk(p.Layout.Output(), fmt.Errorf("%s: %w", name, err))
		}
		return nil
	}
}

// Packages installs the Debian packages that the steps need. Tree and NodeImage do so, too.
func (p *Pipeline) Packages(ctx context.Context, more ...string) error {
	p.packaged = true
	s, end := p.step("packages")
	return end(debian.ThisUser().EnsureInstalled(ctx, s, slices.Concat(more, packages, nodeimage.BuildPackages)...))
}

// Engine returns a container engine that runs privileged containers, on a kernel whose inotify
// limits have been raised where this process may.
func (p *Pipeline) Engine(ctx context.Context) (*engine.Engine, error) {
	s, end := p.step("container engine")
	doctor.RaiseInotify()
	e, err := engine.Ensure(ctx, p.Layout, s)
	return e, end(err)
}

// Tree assembles the source.
func (p *Pipeline) Tree(ctx context.Context, o source.Options) (*source.Tree, error) {
	if !p.packaged {
		if err := p.Packages(ctx); err != nil {
			return nil, err
		}
	}
	o.Stock = o.Stock || p.Stock
	s, end := p.step("source tree")
	t, err := source.Assemble(ctx, p.Layout, p.Series, o, s)
	return t, end(err)
}

// Binaries compiles components of the tree t for platform, one of PublishedPlatforms.
func (p *Pipeline) Binaries(ctx context.Context, t *source.Tree, platform string, components []string) (*build.Result, error) {
	s, end := p.step(strings.TrimSuffix("go build for "+platform, " for "+Host))
	r, err := build.Binaries(ctx, p.Layout, t, strings.TrimPrefix(platform, "linux/"), components, s)
	return r, end(err)
}

// Images packs the binaries of r into images.
func (p *Pipeline) Images(ctx context.Context, r *build.Result) error {
	s, end := p.step("component images")
	return end(build.Images(ctx, p.Layout, r, s))
}

// NodeImage builds the node image and the images of test pods, and all that they need. It
// builds the root file system and the test images while Kubernetes compiles.
func (p *Pipeline) NodeImage(ctx context.Context) (*Result, error) {
	if err := p.Packages(ctx); err != nil {
		return nil, err
	}
	r := new(Result)
	var err error
	if r.Engine, err = p.Engine(ctx); err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if r.Tree, err = p.Tree(gctx, source.Options{}); err != nil {
			return err
		}
		g.Go(func() (err error) {
			s, end := p.step("support images")
			r.Support, err = nodeimage.SupportImages(gctx, p.Layout, p.Series, r.Tree.Dir, runtime.GOARCH, s)
			return end(err)
		})
		if r.Build, err = p.Binaries(gctx, r.Tree, Host, build.Components); err != nil {
			return err
		}
		return p.Images(gctx, r.Build)
	})
	g.Go(func() (err error) {
		s, end := p.step("root file system")
		r.Base, err = nodeimage.Base(gctx, p.Layout, r.Engine, s)
		return end(err)
	})
	g.Go(func() (err error) {
		s, end := p.step("test images")
		r.TestImages, err = testimages.Build(gctx, p.Layout, s)
		return end(err)
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	s, end := p.step("node image")
	r.Image, err = nodeimage.Build(ctx, p.Layout, r.Engine, r.Parts, s)
	return r, end(err)
}

// Cluster creates the cluster that cfg describes from the images of r, unless it already exists
// as described. It has the gates of the series unless cfg has others.
func (p *Pipeline) Cluster(ctx context.Context, r *Result, cfg cluster.Config) (*cluster.Cluster, error) {
	if cfg.Gates == nil {
		var err error
		if cfg.Gates, err = p.Gates(); err != nil {
			return nil, err
		}
	}
	if cfg.ControlPlanes > 1 {
		s, end := p.step("load balancer")
		if err := end(testimages.LoadBalancer(ctx, p.Layout, r.Engine, s)); err != nil {
			return nil, err
		}
	}
	cfg.NodeImage, cfg.Verbosity, cfg.Images, cfg.Temporary = r.Image, p.Verbosity, r.TestImages, p.Temporary
	s, end := p.step("cluster " + cfg.Name)
	c, err := cluster.Create(ctx, p.Layout, r.Engine, cfg, s)
	return c, end(err)
}

// Gates returns the gates to turn on in a cluster of the series.
func (p *Pipeline) Gates() (map[string]bool, error) {
	if p.Stock {
		return nil, nil
	}
	return featuregates.EnabledInClusters(p.Series.Name)
}

// BuildSpecs builds the release's own end-to-end specs from the tree of r.
func (p *Pipeline) BuildSpecs(ctx context.Context, r *build.Result) (*build.Specs, error) {
	s, end := p.step("specs of the release")
	specs, err := build.BuildSpecs(ctx, r, s)
	return specs, end(err)
}

// Specs is BuildSpecs, and also returns a docker-archive of the images that the specs run.
func (p *Pipeline) Specs(ctx context.Context, r *build.Result) (*build.Specs, string, error) {
	specs, err := p.BuildSpecs(ctx, r)
	if err != nil {
		return nil, "", err
	}
	s, end := p.step("images of the specs")
	listed, err := run.Command(ctx, filepath.Join(specs.Dir, "e2e.test"), "--list-images").Output()
	if err != nil {
		return nil, "", end(err)
	}
	etcd, err := nodeimage.Etcd(ctx, p.Layout, r.Tree.Dir, s)
	if err != nil {
		return nil, "", end(err)
	}
	archive, err := testimages.ForSpecs(ctx, p.Layout, r.Tree.Dir, specs.Dir, specs.Key, etcd, imageRefs(ctx, r.Tree.Dir, listed), s)
	specs.Key += filepath.Base(archive) // what they run is part of their results
	return specs, archive, end(err)
}

var imageRef = regexp.MustCompile(`(?m)^[a-z0-9.-]+(/[a-z0-9._-]+)+:[A-Za-z0-9._-]+$`)

// imageRefs returns the references in listed, and those that specs in the tree have in their text.
func imageRefs(ctx context.Context, tree, listed string) []string {
	// git grep fails if there is none.
	found, _ := gitrepo.Repo{Dir: tree}.Quiet(ctx, "grep", "-hoE", `registry\.k8s\.io/e2e-test-images/[a-z0-9-]+:[0-9][0-9.-]*`, "--", "test/e2e")
	refs := imageRef.FindAllString(listed+"\n"+found, -1)
	slices.Sort(refs)
	return slices.Compact(refs)
}

// Component returns the build of one component that name selects: "stock:v1.32" is the release of series v1.32
// without patches, "patched:v1.33" the series' tree as it is, edits included, and anything else the path of an
// executable. It compiles only that component, and only if it has changed.
func (p *Pipeline) Component(ctx context.Context, name, component string) (node.Build, error) {
	kind, minor, isSeries := strings.Cut(name, ":")
	if !isSeries || strings.Contains(kind, "/") {
		return p.executable(ctx, name, component)
	}
	if kind != "stock" && kind != "patched" {
		return node.Build{}, fmt.Errorf("%q names no build: write stock:MINOR, patched:MINOR or the path of an executable", name)
	}
	s, err := series.Load(p.Layout, minor)
	if errors.Is(err, series.ErrUnknown) {
		known := series.Names(p.Layout)
		return node.Build{}, fmt.Errorf("%w %q in --build %s: choose %s:%s", series.ErrUnknown, minor, name, kind, strings.Join(known, ", "+kind+":"))
	}
	if err != nil {
		return node.Build{}, fmt.Errorf("build %q: %w", name, err)
	}
	p = &Pipeline{Layout: p.Layout, Series: s, Reporter: p.Reporter, Stock: kind == "stock"}
	t, err := p.TreeAsItIs(ctx)
	if err != nil {
		return node.Build{}, err
	}
	r, err := p.Binaries(ctx, t, Host, []string{component})
	if err != nil {
		return node.Build{}, err
	}
	b, err := node.OpenBuild(ctx, component, r.Binaries[component])
	if err != nil || !slices.Contains(build.ImageComponents, component) {
		return b, err
	}
	err = p.Images(ctx, r)
	b.Image = r.Images[component]
	return b, err
}

// TreeAsItIs returns the tree, edits included, or a new one if there is none yet. A stock tree has no edits.
func (p *Pipeline) TreeAsItIs(ctx context.Context) (*source.Tree, error) {
	if !p.Stock {
		t, err := source.Open(ctx, p.Layout, p.Series, false, p.Reporter)
		if !errors.Is(err, source.ErrNoTree) {
			return t, err
		}
	}
	return p.Tree(ctx, source.Options{})
}

// executable returns the build in the file at path.
func (p *Pipeline) executable(ctx context.Context, path, component string) (node.Build, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return node.Build{}, err
	}
	b, err := node.OpenBuild(ctx, component, path)
	if err != nil || !slices.Contains(build.ImageComponents, component) {
		return b, err
	}
	s, end := p.step("component image")
	b.Image, err = build.ComponentImage(ctx, p.Layout, component, b.Version, path, s)
	return b, end(err)
}
