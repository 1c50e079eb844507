// Package pipeline joins the steps that lead from a release tag to a running
// cluster, and overlaps those that do not wait for one another.
package pipeline

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/testimages"
)

// packages are the Debian packages that the steps' tools come from; the container
// engine's own are engine.Ensure's.
var packages = []string{"protobuf-compiler", "mmdebstrap"}

// Pipeline makes what one series needs.
type Pipeline struct {
	Layout   layout.Layout
	Series   series.Series
	Reporter *progress.Reporter
	// Stock leaves the patches out.
	Stock bool
	// Verbosity is klog's -v on the clusters; 0 leaves Kubernetes' default.
	Verbosity int
}

// Result is what a finished pipeline made.
type Result struct {
	Engine     *engine.Engine
	Tree       *source.Tree
	Build      *build.Result
	Image      string   // the reference of the node image
	TestImages []string // archives of the images that test pods run
}

// step starts a step with a line of its own; end ends it with the error that it had.
func (p *Pipeline) step(name string) (s *progress.Step, end func(error) error) {
	s = p.Reporter.Step(name)
	return s, func(err error) error {
		if err := s.End(err); err != nil {
			return remedy.ExplainDisk(p.Layout.Output(), fmt.Errorf("%s: %w", name, err))
		}
		return nil
	}
}

// Packages installs the Debian packages that the steps need.
func (p *Pipeline) Packages(ctx context.Context, more ...string) error {
	s, end := p.step("packages")
	return end(debian.ThisUser().EnsureInstalled(ctx, s, slices.Concat(more, packages, nodeimage.BuildPackages)...))
}

// Engine sees to a container engine that runs privileged containers.
func (p *Pipeline) Engine(ctx context.Context) (*engine.Engine, error) {
	s, end := p.step("container engine")
	e, err := engine.Ensure(ctx, p.Layout, s)
	return e, end(err)
}

// Tree assembles the source.
func (p *Pipeline) Tree(ctx context.Context, o source.Options) (*source.Tree, error) {
	o.Stock = o.Stock || p.Stock
	s, end := p.step("source tree")
	t, err := source.Assemble(ctx, p.Layout, p.Series, o, s)
	return t, end(err)
}

// Binaries compiles components of the tree t.
func (p *Pipeline) Binaries(ctx context.Context, t *source.Tree, components []string) (*build.Result, error) {
	s, end := p.step("go build")
	r, err := build.Binaries(ctx, p.Layout, t, components, s)
	return r, end(err)
}

// Images packs the binaries of r into images.
func (p *Pipeline) Images(ctx context.Context, r *build.Result) error {
	s, end := p.step("component images")
	return end(build.Images(ctx, p.Layout, r, s))
}

// NodeImage goes all the way to the node image and the images of test pods. The
// root file system and the test images are made while Kubernetes compiles.
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
		// They are made here only to be in the cache when the node image wants them.
		g.Go(func() error {
			s, end := p.step("support images")
			_, err := nodeimage.SupportImages(gctx, p.Layout, p.Series, r.Tree.Dir, s)
			return end(err)
		})
		if r.Build, err = p.Binaries(gctx, r.Tree, build.Components); err != nil {
			return err
		}
		return p.Images(gctx, r.Build)
	})
	g.Go(func() error {
		s, end := p.step("root file system")
		_, err := nodeimage.Base(gctx, p.Layout, r.Engine, s)
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
	r.Image, err = nodeimage.Build(ctx, p.Layout, r.Engine, r.Build, s)
	return r, end(err)
}

// Cluster creates the cluster that cfg describes from the images that r has, or finds it as
// it should be.
func (p *Pipeline) Cluster(ctx context.Context, r *Result, cfg cluster.Config) (*cluster.Cluster, error) {
	cfg.NodeImage, cfg.Verbosity, cfg.Images = r.Image, p.Verbosity, r.TestImages
	s, end := p.step("cluster " + cfg.Name)
	c, err := cluster.Create(ctx, p.Layout, r.Engine, cfg, s)
	return c, end(err)
}

// Gates are the gates that a cluster of the series has on: those of this branch, and on
// v1.29 the one of ValidatingAdmissionPolicy, which later releases have on by default.
func (p *Pipeline) Gates() (map[string]bool, error) {
	if p.Stock {
		return nil, nil
	}
	gates, err := featuregates.Enabled(p.Series.Name)
	if err == nil && p.Series.Name == "v1.29" {
		gates[cluster.ValidatingAdmissionPolicy] = true
	}
	return gates, err
}
