package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// RebaseOptions are choices of Rebase.
type RebaseOptions struct {
	// Skip leaves out the patch at which the rebase stopped.
	Skip bool
}

// Rebased says what was done with one patch.
type Rebased struct {
	Title string
	// How is what Rebase did: one of the constants below.
	How string
}

// What is done with a patch in a rebase.
const (
	RebasedKept     = "kept"          // carried before and the same since, or the series' own
	RebasedApplied  = "applied"       // git am could do it, by a 3-way merge if need be
	RebasedAgain    = "applied again" // as applied, but the earlier carry was adapted: that may be lost
	RebasedResolved = "resolved"      // the user resolved conflicts
	RebasedSkipped  = "skipped"       // left out with RebaseOptions.Skip
	RebasedThere    = "already there" // the release has all of it
)

// Rebase carries the patches of one series to the release that another stands on, and
// writes them to the other's patch files. The work is done in a repository of its own
// under _output/rebase, where git has both releases and can merge; what the user adapted in
// an earlier carry stays as long as the patch that it was carried from does. It returns
// what was done with each patch, and the files that it wrote; no patches at all where there
// was nothing to do.
//
// At a conflict the error is a *RebaseConflictError. The next call goes on from there,
// and so does one after an interruption. Edits in either series' tree are ErrEdited.
func Rebase(ctx context.Context, l layout.Layout, from, to series.Series, o RebaseOptions, step *progress.Step) (done []Rebased, written *Written, err error) {
	return newRebase(l, from, to, o, step).run(ctx)
}

// AbortRebase drops a rebase to the series to. The series' files are as they were before.
func AbortRebase(ctx context.Context, l layout.Layout, to series.Series, step *progress.Step) error {
	r := newRebase(l, series.Series{}, to, RebaseOptions{}, step)
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := readRebaseState(r.tree.Dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("no rebase to series %s is in progress", to.Name)
	}
	return r.remove()
}

// RebasesInProgress maps the names of the series to which a rebase has begun to those
// of the series that they come from.
func RebasesInProgress(l layout.Layout) (map[string]string, error) {
	dirs, err := filepath.Glob(filepath.Join(rebaseDir(l, "*")))
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, dir := range dirs {
		st, err := readRebaseState(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[filepath.Base(dir)] = st.From
	}
	return found, nil
}

func rebaseDir(l layout.Layout, to string) string { return filepath.Join(l.Output(), "rebase", to) }

// rebase is one run of Rebase: an assembly of the series to, in another place and with
// patches that are merged.
type rebase struct {
	*assembly
	from    series.Series
	options RebaseOptions
	rebased *rebaseState
}

func newRebase(l layout.Layout, from, to series.Series, o RebaseOptions, step *progress.Step) *rebase {
	r := &rebase{assembly: newAssembly(l, to, Options{}, step), from: from, options: o}
	r.tree.Dir = rebaseDir(l, to.Name)
	return r
}

func (r *rebase) run(ctx context.Context) ([]Rebased, *Written, error) {
	if r.from.Name == r.series.Name {
		return nil, nil, fmt.Errorf("series %s is carried to itself: name two with --from and --to", r.from.Name)
	}
	goesOn, err := r.isInProgress()
	if err != nil {
		return nil, nil, err
	}
	var source *Tree
	if !goesOn {
		// The files that the patches were made from are in its repository.
		if source, err = r.sourceTree(ctx); err != nil {
			return nil, nil, err
		}
	}
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if !goesOn {
		begun, err := r.begin(ctx, source)
		if err != nil || !begun {
			return nil, nil, r.interrupted(ctx, err)
		}
	} else if r.state, err = readState(r.tree.Dir); err != nil {
		return nil, nil, err
	}
	if err := r.apply(ctx); err != nil {
		return r.rebased.Done, nil, r.interrupted(ctx, err)
	}
	written, err := r.finish(ctx)
	return r.rebased.Done, written, r.interrupted(ctx, err)
}

func (r *rebase) interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the rebase to %s was interrupted, the next time it goes on: %w", r.series.Name, ctx.Err())
	}
	return err
}

func (r *rebase) isInProgress() (bool, error) {
	var err error
	if r.rebased, err = readRebaseState(r.tree.Dir); errors.Is(err, os.ErrNotExist) {
		if r.options.Skip {
			return false, fmt.Errorf("no rebase to series %s is in progress: there is nothing to skip", r.series.Name)
		}
		return false, nil
	}
	if err == nil && r.rebased.From != r.from.Name {
		err = fmt.Errorf("a rebase from %s to %s is in progress: finish it with `podenv rebase --continue`, or drop it with --abort", r.rebased.From, r.series.Name)
	}
	return true, err
}

// sourceTree brings the tree of the series that is carried up to date.
func (r *rebase) sourceTree(ctx context.Context) (*Tree, error) {
	r.step.Now("looking at the tree of %s", r.from.Name)
	a := newAssembly(r.layout, r.from, Options{}, nil)
	a.gen = r.gen
	return a.run(ctx)
}

// begin makes the repository of the rebase, unless there is nothing to carry.
func (r *rebase) begin(ctx context.Context, source *Tree) (begun bool, err error) {
	if r.in, err = readInputs(r.layout, r.series, false); err != nil {
		return false, err
	}
	if err := r.refuseEdits(ctx); err != nil {
		return false, err
	}
	from, err := readPatches(r.from)
	if err != nil {
		return false, err
	}
	earlier, err := readCarried(r.series)
	if err != nil {
		return false, err
	}
	header, err := r.series.Boilerplate()
	if err != nil {
		return false, err
	}
	now := carriedOf(from)
	for i := range from {
		if from[i], err = newPatch(from[i].path, from[i].stored, r.series, header); err != nil {
			return false, fmt.Errorf("carrying %s to %s: %w", from[i].name(), r.series.Name, err)
		}
	}
	patches := plan(r.from.Name, from, r.in.patches, earlier)
	if matchesPlan(patches, r.in.patches) && slices.Equal(earlier, now) {
		r.step.Cached("nothing to carry")
		return false, nil
	}
	if err := r.remove(); err != nil {
		return false, err
	}
	if err := r.create(ctx); err != nil {
		return false, err
	}
	if err := r.commitNewFiles(ctx); err != nil {
		return false, err
	}
	if err := r.tree.addAlternates(source.Dir, r.layout.Tree(r.series.Name)); err != nil {
		return false, err
	}
	r.state.Patches = r.in.patchHashes()
	r.state.NewFiles = r.in.newFileHashes()
	for _, p := range patches {
		for _, f := range p.newFiles {
			r.state.recordNewFile(f.path, &f)
		}
	}
	if err := writeState(r.tree.Dir, r.state); err != nil {
		return false, err
	}
	r.rebased, err = newRebaseState(r.tree.Dir, r.from.Name, patches, now, r.state.last())
	return true, err
}

// refuseEdits refuses to write patches that the tree of the series, with edits
// in it, would then not be made from.
func (r *rebase) refuseEdits(ctx context.Context) error {
	a := newAssembly(r.layout, r.series, Options{}, r.step)
	a.key = r.in.key()
	_, err := a.find(ctx)
	return err
}

// addAlternates lets git read the objects of other repositories, those that exist, as if they
// were r's. r is gone before anybody deletes them.
func (r repo) addAlternates(trees ...string) error {
	var text string
	for _, tree := range trees {
		if _, err := os.Stat(stateFile(tree)); err == nil {
			text += filepath.Join(tree, ".git", "objects") + "\n"
		}
	}
	return os.WriteFile(r.Path("objects", "info", "alternates"), []byte(text), 0o644)
}

// finish writes the series' files and removes the repository.
func (r *rebase) finish(ctx context.Context) (*Written, error) {
	written, err := r.writeCommits(ctx)
	if err != nil {
		return written, err
	}
	news, err := writeCarried(r.series, r.rebased.From, r.rebased.Carried)
	if err != nil {
		return written, err
	}
	if news {
		written.Files = append(written.Files, r.relative(filepath.Join(r.series.Dir, carriedName)))
	}
	return written, r.remove()
}

// remove deletes the repository. What makes it one of a rebase goes first.
func (r *rebase) remove() error {
	if err := os.RemoveAll(rebaseStateDir(r.tree.Dir)); err != nil {
		return err
	}
	return os.RemoveAll(r.tree.Dir)
}
