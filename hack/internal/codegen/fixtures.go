package codegen

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// fixtures generates the files that upstream's round-trip tests compare serialized objects
// with. The tests write them, in a temporary folder; a second run verifies them.
func (p *pipeline) fixtures(ctx context.Context, v *view) (outputs, error) {
	out := outputs{}
	for _, set := range fixtureSets {
		packages := slices.Collect(maps.Keys(p.affected))
		if !slices.ContainsFunc(packages, func(pkg string) bool { return strings.HasPrefix(pkg, set.pkg+"/") }) {
			continue
		}
		files, err := p.fixtureSet(ctx, v, set)
		if err != nil {
			return nil, fmt.Errorf("generating the round-trip fixtures of %s: %w", set.pkg, err)
		}
		maps.Copy(out, files)
	}
	return out, nil
}

func (p *pipeline) fixtureSet(ctx context.Context, v *view, set fixtureSet) (outputs, error) {
	head := path.Join(set.dir, "testdata/HEAD")
	before, err := listGenerated(&view{dir: p.tree}, head)
	if err != nil {
		return nil, err
	}
	made := &view{dir: filepath.Join(p.work, "fixtures")}
	if err := os.MkdirAll(made.path(head), 0o755); err != nil {
		return nil, err
	}
	dir, test := made.path(set.dir), made.path(set.dir+"/fixtures.test")
	if err := p.command(ctx, v, "go", "test", "-c", "-o", test, set.pkg).Run(); err != nil {
		return nil, err
	}
	args := []string{"-test.run", "^TestCompatibility$//^HEAD$"}
	// This run fails: the files that it compares with do not exist yet.
	p.command(ctx, v, test, args...).Dir(dir).Env("UPDATE_COMPATIBILITY_FIXTURE_DATA=true").Run() //nolint:errcheck // see above
	if err := p.command(ctx, v, test, args...).Dir(dir).Run(); err != nil {
		return nil, err
	}
	after, err := listGenerated(made, head)
	if err != nil {
		return nil, err
	}
	return made.collect(append(before, after...)...)
}
