package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// treeBranch is the branch that assembly resets. It leaves the user's branches alone.
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
		layout: l, series: s, options: o, step: step, gen: generatorsOf(s),
		tree: repo{gitrepo.Repo{Dir: l.Tree(treeName(s, o.Stock)), Log: step.Log()}},
	}
}

// run implements Assemble.
func (a *assembly) run(ctx context.Context) (*Tree, error) {
	unlock, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if a.in, err = readInputs(a.series, a.options.Stock); err != nil {
		return nil, err
	}
	a.key = a.in.key()
	found, err := a.find(ctx)
	if errors.Is(err, ErrEdited) && a.options.KeepEdits && a.state.Key == a.key && !a.tree.inProgress() {
		a.step.Cached("unchanged, with edits")
		return a.result(), nil
	}
	if err != nil {
		return nil, err
	}
	if found && a.isUpToDate(ctx) {
		a.step.Cached("unchanged")
		return a.result(), nil
	}
	if !found {
		err = a.create(ctx)
	}
	if err == nil {
		err = a.restore(ctx, a.update(ctx))
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("assembling %s was interrupted; the next run continues: %w", filepath.Base(a.tree.Dir), ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	return a.result(), nil
}

func (a *assembly) result() *Tree {
	key := digest.Of("key", a.state.Key, a.state.Generated)
	return &Tree{Dir: a.tree.Dir, Series: a.series, Stock: a.options.Stock, Key: key}
}

// lock locks the tree against other podenv processes.
func (a *assembly) lock(ctx context.Context) (unlock func(), err error) {
	return lockfile.Lock(ctx, a.lockFile(), "that works on "+a.tree.Dir, a.step)
}

func (a *assembly) lockFile() string {
	return filepath.Join(a.layout.Cache("source"), filepath.Base(a.tree.Dir)+".lock")
}

// isUpToDate reports whether a tree without edits matches the inputs.
func (a *assembly) isUpToDate(ctx context.Context) bool {
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

// create makes a tree of the release only. It does so in a temporary folder that it renames.
func (a *assembly) create(ctx context.Context) error {
	release, err := releaseRepo(ctx, a.layout, a.series, a.in.release, a.step)
	if err != nil {
		return err
	}
	a.step.Now("writing the files of %s", a.series.Release)
	tmp := filepath.Join(filepath.Dir(a.tree.Dir), ".new-"+filepath.Base(a.tree.Dir))
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(filepath.Dir(tmp), 0o755)); err != nil {
		return err
	}
	commit, err := repo{gitrepo.Repo{Dir: tmp, Log: a.step.Log()}}.cloneRelease(ctx, release)
	if err != nil {
		return fmt.Errorf("writing the files of %s: %w", a.series.Release, err)
	}
	a.state = &state{Steps: []stateStep{{Kind: kindRelease, Input: a.in.release, Commit: commit}}}
	if err := writeState(tmp, a.state); err != nil {
		return err
	}
	// There may be an empty folder. find has refused anything else.
	if err := os.Remove(a.tree.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(tmp, a.tree.Dir)
}

// restoreTimeout limits restore, which also runs after ctx has ended.
const restoreTimeout = time.Minute

// update makes the commits that follow the last step whose input is unchanged.
func (a *assembly) update(ctx context.Context) error {
	// HEAD may be a commit that WritePatches has written to the patches.
	if err := a.saveForeignHead(ctx); err != nil {
		return err
	}
	steps := a.unchanged()
	a.state = &state{Busy: true, Steps: a.state.Steps, Written: a.state.Written, Patches: a.in.patchHashes(), NewFiles: a.in.newFileHashes()}
	if err := writeState(a.tree.Dir, a.state); err != nil {
		return err
	}
	if len(steps) == 0 {
		commit, err := a.fetchRelease(ctx)
		if err != nil {
			return err
		}
		steps = []stateStep{{Kind: kindRelease, Input: a.in.release, Commit: commit}}
	}
	if err := a.tree.moveTo(ctx, steps[len(steps)-1].Commit); err != nil {
		return err
	}
	a.state.Steps, a.state.Written = steps, ""
	if err := writeState(a.tree.Dir, a.state); err != nil {
		return err
	}
	if err := a.applyPatches(ctx); err != nil {
		return err
	}
	if !a.options.Stock {
		if err := a.commitGenerated(ctx); err != nil {
			return err
		}
	}
	a.state.Key, a.state.Busy = a.key, false
	return writeState(a.tree.Dir, a.state)
}

// unchanged returns the recorded steps before the first one whose input has changed.
func (a *assembly) unchanged() []stateStep {
	want := []stateStep{{Kind: kindRelease, Input: a.in.release}}
	for _, p := range a.in.patches {
		want = append(want, stateStep{Kind: kindPatch, Input: p.hash})
	}
	n := 0
	for n < len(want) && n < len(a.state.Steps) &&
		a.state.Steps[n].Kind == want[n].Kind && a.state.Steps[n].Input == want[n].Input {
		n++
	}
	return slices.Clone(a.state.Steps[:n])
}

// fetchRelease fetches the commit of another release into the tree's repository, as a branch
// because users run `git diff release`.
func (a *assembly) fetchRelease(ctx context.Context) (string, error) {
	release, err := releaseRepo(ctx, a.layout, a.series, a.in.release, a.step)
	if err != nil {
		return "", err
	}
	if err := a.tree.Run(ctx, "fetch", "--quiet", "--no-tags", "--no-auto-maintenance", "--force", "--update-head-ok", release.Dir, releaseBranch+":"+releaseBranch); err != nil {
		return "", err
	}
	return a.tree.Quiet(ctx, "rev-parse", releaseBranch)
}

// restore resets the tree to the last commit that assembly made, if err is not nil, and returns
// err. It leaves a tree alone that stopped at a conflict.
func (a *assembly) restore(ctx context.Context, err error) error {
	var conflict *ConflictError
	if err == nil || errors.As(err, &conflict) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	restoreErr := a.tree.unlock()
	if restoreErr == nil {
		restoreErr = a.tree.moveTo(ctx, a.state.last())
	}
	if restoreErr != nil {
		// The state is still busy: the next assembly tries again.
		return errors.Join(err, fmt.Errorf("the tree is left half-made and the next `podenv tree` puts it in order: %w", restoreErr))
	}
	a.state.Busy = false
	return errors.Join(err, writeState(a.tree.Dir, a.state))
}

// inputs are the inputs of a tree except the generators, with a hash of each part.
type inputs struct {
	release string // hash of the pins and of releaseRepoVersion
	patches []patchFile
}

// readInputs reads the inputs of a tree. The inputs of a stock tree are the release and the fixes of s.
func readInputs(s series.Series, stock bool) (*inputs, error) {
	in := &inputs{}
	pins, err := pinFiles(s)
	if err != nil {
		return nil, err
	}
	in.release = digest.Of("release", releaseRepoVersion, s.Release, string(pins["go.mod"]), string(pins["go.sum"]))
	if stock && len(s.Fixes) == 0 {
		return in, nil
	}
	in.patches, err = readPatches(s)
	return in, err
}

// newFileHashes maps the paths of the new files to their hashes.
func (in *inputs) newFileHashes() map[string]string {
	hashes := map[string]string{}
	for _, p := range in.patches {
		for _, f := range p.newFiles {
			hashes[f.path] = f.hash()
		}
	}
	return hashes
}

// patchHashes returns the hashes of the stored patches.
func (in *inputs) patchHashes() []string {
	hashes := make([]string, len(in.patches))
	for i, p := range in.patches {
		hashes[i] = patchHash(p.stored)
	}
	return hashes
}

// key is the hash of all inputs.
func (in *inputs) key() string {
	parts := []string{"tree 3", in.release}
	for _, p := range in.patches {
		parts = append(parts, p.hash)
	}
	return digest.Of(parts...)
}
