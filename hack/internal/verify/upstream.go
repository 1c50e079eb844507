package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/source"
)

// TreeEnv is how Go commands run in a tree: as a module of its own, with the flags
// that the builds use, so that all share the build cache.
var TreeEnv = []string{"GOWORK=off", "GOFLAGS=-mod=readonly -trimpath", "CGO_ENABLED=0"}

// Upstream runs Kubernetes' own tests of every package that the tree's commits
// touch. A test that fails is run on the stock release too: one that fails there
// as well is skipped, with that as its reason.
func Upstream(l layout.Layout, tree, stock func(context.Context) (*source.Tree, error)) Check {
	return Check{Name: "upstream tests", Group: "upstream", Run: func(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
		t, err := tree(ctx)
		if err != nil {
			return nil, err
		}
		packages, err := touchedPackages(ctx, t)
		if err != nil {
			return nil, err
		}
		step.Now("%d packages", len(packages))
		cases, err := upstreamTests(ctx, l, "upstream-"+t.Series.Name, t.Dir, packages, step)
		if err != nil || junit.Count(cases).Failed == 0 {
			return cases, err
		}
		step.Now("%d failed: trying them on the stock release", junit.Count(cases).Failed)
		s, err := stock(ctx)
		if err != nil {
			return cases, fmt.Errorf("comparing with the stock release: %w", err)
		}
		return excuse(ctx, l, s, cases, step)
	}}
}

func upstreamTests(ctx context.Context, l layout.Layout, name, dir string, packages []string, step *progress.Step) ([]junit.Case, error) {
	return GoTest{
		Layout: l, Name: name, Dir: dir, Env: TreeEnv,
		Packages: packages, Flags: []string{"-timeout=20m"},
	}.Run(ctx, step)
}

// failingTests lists the top-level tests that failed, by package. A package that does
// not compile has none: gotestsum reports a test without a package for it, which
// nothing on the stock release can excuse.
func failingTests(cases []junit.Case) map[string][]string {
	failing := map[string][]string{}
	for _, c := range cases {
		if (c.Failure != nil || c.Error != nil) && c.ClassName != "" {
			name, _, _ := strings.Cut(c.Name, "/")
			failing[c.ClassName] = append(failing[c.ClassName], name)
		}
	}
	return failing
}

// excuse turns failures that the stock release has too into skips.
func excuse(ctx context.Context, l layout.Layout, stock *source.Tree, cases []junit.Case, step *progress.Step) ([]junit.Case, error) {
	stockFails := map[string]bool{}
	for pkg, names := range failingTests(cases) {
		slices.Sort(names)
		pattern := "-run=^(" + strings.Join(slices.Compact(names), "|") + ")$"
		again, err := GoTest{Layout: l, Name: "upstream-stock", Dir: stock.Dir, Env: TreeEnv, Flags: []string{pattern, pkg}}.Run(ctx, step)
		if err != nil {
			return cases, fmt.Errorf("running %s on the stock release: %w", pkg, err)
		}
		for _, c := range again {
			if c.Failure != nil || c.Error != nil {
				stockFails[c.ClassName+"\x00"+c.Name] = true
			}
		}
	}
	for i, c := range cases {
		if (c.Failure != nil || c.Error != nil) && stockFails[c.ClassName+"\x00"+c.Name] {
			cases[i].Failure, cases[i].Error = nil, nil
			cases[i].Skipped = &junit.Message{Message: "fails on the stock release too, on this host"}
		}
	}
	return cases, nil
}

// touchedPackages lists the import paths of the packages in which the tree differs from
// its release, as far as they have Go files.
func touchedPackages(ctx context.Context, t *source.Tree) ([]string, error) {
	files, err := t.Changed(ctx)
	if err != nil {
		return nil, err
	}
	packages := source.Packages(files)
	if len(packages) == 0 {
		return nil, fmt.Errorf("the tree at %s does not differ from its release: are there patches?", t.Dir)
	}
	return packages, nil
}
