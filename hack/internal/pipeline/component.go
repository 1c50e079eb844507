package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
)

// Component returns the build of one component that name selects: "stock:v1.32" is the
// release of series v1.32 without patches, "patched:v1.33" the series' tree as it is, edits
// included, and anything else the path of an executable. It compiles only that component, and
// only if it has changed.
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
	r, err := p.Binaries(ctx, t, []string{component})
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

// TreeAsItIs returns the tree, edits included, or a new one if there is none yet. A stock tree
// has no edits.
func (p *Pipeline) TreeAsItIs(ctx context.Context) (*source.Tree, error) {
	if !p.Stock {
		t, err := source.Open(ctx, p.Layout, p.Series, false, p.Reporter)
		if !errors.Is(err, source.ErrNoTree) {
			return t, err
		}
	}
	if err := p.Packages(ctx); err != nil {
		return nil, err
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
