package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// treeBranch is the branch that assembly moves. Branches of a person's stay.
const treeBranch = "podenv"

// assembly is one run of Assemble.
type assembly struct {
	layout  layout.Layout
	series  series.Series
	options Options
	step    *progress.Step
	gen     generator

	tree  repo
	in    *inputs
	key   string
	state *state
}

func newAssembly(l layout.Layout, s series.Series, o Options, step *progress.Step) *assembly {
	return &assembly{
		layout: l, series: s, options: o, step: step, gen: kubernetesGenerators,
		tree: repo{dir: l.Tree(treeName(s, o.Stock)), log: step.Log()},
	}
}

// run is Assemble.
func (a *assembly) run(ctx context.Context) (*Tree, error) {
	unlock, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if a.in, err = readInputs(a.layout, a.series, a.options.Stock); err != nil {
		return nil, err
	}
	a.key = a.in.key()
	found, err := a.find(ctx)
	if err != nil {
		return nil, err
	}
	if found && a.current(ctx) {
		a.step.Cached("unchanged")
		return a.result(), nil
	}
	if !found {
		err = a.create(ctx)
	}
	if err == nil {
		err = a.settle(ctx, a.update(ctx))
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("assembling %s was interrupted, the next time it goes on: %w", filepath.Base(a.tree.dir), ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	return a.result(), nil
}

func (a *assembly) result() *Tree { return newTree(a.tree.dir, a.series, a.options.Stock, a.state) }

// lock keeps a second podenv out of the tree.
func (a *assembly) lock(ctx context.Context) (unlock func(), err error) {
	return lockfile.Lock(ctx, filepath.Join(a.layout.Cache("source"), filepath.Base(a.tree.dir)+".lock"), "that works on "+a.tree.dir, a.step)
}

// current tells whether the tree that find has found clean is what the inputs give.
func (a *assembly) current(ctx context.Context) bool {
	if a.state.Key != a.key {
		return false
	}
	if head, err := a.tree.head(ctx); err != nil || head != a.state.last() {
		return false
	}
	if a.options.Stock {
		return true
	}
	generated, err := a.generatedKey(ctx)
	return err == nil && generated == a.state.Generated
}

// create makes the tree with the release alone in it, beside its place, and moves it there.
func (a *assembly) create(ctx context.Context) error {
	release, err := pristine(ctx, a.layout, a.series, a.in.release, a.step)
	if err != nil {
		return err
	}
	a.step.Now("writing the files of %s", a.series.Release)
	beside := filepath.Join(filepath.Dir(a.tree.dir), ".new-"+filepath.Base(a.tree.dir))
	if err := os.RemoveAll(beside); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(beside), 0o755); err != nil {
		return err
	}
	made := repo{dir: beside, log: a.step.Log()}
	commit, err := made.cloneOf(ctx, release)
	if err != nil {
		return fmt.Errorf("writing the files of %s: %w", a.series.Release, err)
	}
	a.state = &state{Steps: []stateStep{{Kind: kindRelease, Input: a.in.release, Commit: commit}}}
	if err := writeState(beside, a.state); err != nil {
		return err
	}
	// An empty folder may be in the way; anything else, find has refused.
	if err := os.Remove(a.tree.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(beside, a.tree.dir)
}
