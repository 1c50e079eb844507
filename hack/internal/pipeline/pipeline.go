// Package pipeline joins the steps that lead from a release tag to a running
// cluster, and overlaps those that do not wait for one another.
package pipeline

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/mod/semver"
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

// step runs one step with a line of its own.
func (p *Pipeline) step(name string, f func(*progress.Step) error) error {
	s := p.Reporter.Step(name)
	if err := s.End(f(s)); err != nil {
		return remedy.ExplainDisk(p.Layout.Output(), fmt.Errorf("%s: %w", name, err))
	}
	return nil
}

// Packages installs the Debian packages that the steps need.
func (p *Pipeline) Packages(ctx context.Context, more ...string) error {
	return p.step("packages", func(s *progress.Step) error {
		return debian.ThisUser().EnsureInstalled(ctx, s, slices.Concat(more, packages, nodeimage.BuildPackages(p.Series))...)
	})
}

// Engine sees to a container engine that runs privileged containers.
func (p *Pipeline) Engine(ctx context.Context) (e *engine.Engine, err error) {
	err = p.step("container engine", func(s *progress.Step) error {
		e, err = engine.Ensure(ctx, p.Layout, s)
		return err
	})
	return e, err
}

// Tree assembles the source.
func (p *Pipeline) Tree(ctx context.Context, o source.Options) (t *source.Tree, err error) {
	o.Stock = o.Stock || p.Stock
	err = p.step("source tree", func(s *progress.Step) error {
		t, err = source.Assemble(ctx, p.Layout, p.Series, o, s)
		return err
	})
	return t, err
}

// Binaries compiles components of the tree t.
func (p *Pipeline) Binaries(ctx context.Context, t *source.Tree, components []string) (r *build.Result, err error) {
	err = p.step("go build", func(s *progress.Step) error {
		r, err = build.Binaries(ctx, p.Layout, t, components, s)
		return err
	})
	return r, err
}

// Images packs the binaries of r into images.
func (p *Pipeline) Images(ctx context.Context, r *build.Result) error {
	return p.step("component images", func(s *progress.Step) error {
		return build.Images(ctx, p.Layout, r, s)
	})
}

// supportImages makes the images of etcd, CoreDNS and the like that t asks for.
func (p *Pipeline) supportImages(ctx context.Context, t *source.Tree) error {
	return p.step("support images", func(s *progress.Step) error {
		_, err := nodeimage.SupportImages(ctx, p.Layout, p.Series, t.Dir, s)
		return err
	})
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
		g.Go(func() error { return p.supportImages(gctx, r.Tree) })
		if r.Build, err = p.Binaries(gctx, r.Tree, build.Components); err != nil {
			return err
		}
		return p.Images(gctx, r.Build)
	})
	g.Go(func() error {
		return p.step("root file system", func(s *progress.Step) error {
			_, err := nodeimage.Base(gctx, p.Layout, r.Engine, p.Series, s)
			return err
		})
	})
	g.Go(func() error {
		return p.step("test images", func(s *progress.Step) (err error) {
			r.TestImages, err = testimages.Build(gctx, p.Layout, s)
			return err
		})
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	err = p.step("node image", func(s *progress.Step) error {
		r.Image, err = nodeimage.Build(ctx, p.Layout, r.Engine, r.Build, s)
		return err
	})
	return r, err
}

// Cluster creates the cluster that cfg describes from the images that r has, or finds it as
// it should be.
func (p *Pipeline) Cluster(ctx context.Context, r *Result, cfg cluster.Config) (c *cluster.Cluster, err error) {
	cfg.NodeImage, cfg.Verbosity, cfg.Images = r.Image, p.Verbosity, r.TestImages
	cfg.CgroupV1 = knowsFailCgroupV1(p.Series.Name)
	err = p.step("cluster "+cfg.Name, func(s *progress.Step) error {
		c, err = cluster.Create(ctx, p.Layout, r.Engine, cfg, s)
		return err
	})
	return c, err
}

// knowsFailCgroupV1 reports whether kubelets of minor can be told to run on cgroup v1. All that
// can are told, as their nodes may go on to a minor that refuses it by default (v1.35).
func knowsFailCgroupV1(minor string) bool { return semver.Compare(minor, "v1.31") >= 0 }

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
