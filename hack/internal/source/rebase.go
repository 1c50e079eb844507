package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// Rebased is the result for one patch.
type Rebased struct {
	Title string
	// How is one of the constants below.
	How string
}

// The values of Rebased.How.
const (
	RebasedKept     = "kept"          // carried before and unchanged since, or the series' own
	RebasedApplied  = "applied"       // by git am, each hunk at its line
	RebasedMoved    = "context moved" // by git am, hunks at other lines
	RebasedMerged   = "merged"        // by a 3-way merge
	RebasedAgain    = "applied again" // in one of these ways, but adaptations of the earlier carry may be lost
	RebasedResolved = "by hand"       // the user resolved conflicts
	RebasedSkipped  = "skipped"       // left out as the user asked
	RebasedThere    = "already there" // the release contains all of it
)

// score is the effort that a result takes: to look at what git did, or to do it by hand.
var score = map[string]int{RebasedMoved: 1, RebasedMerged: 3, RebasedAgain: 3, RebasedResolved: 10}

// Effort is the sum of the scores of all patches, and how many have which result.
func Effort(done []Rebased) string {
	sum, count := 0, map[string]int{}
	for _, d := range done {
		sum += score[d.How]
		count[d.How]++
	}
	text := strconv.Itoa(sum)
	for _, how := range []string{RebasedKept, RebasedApplied, RebasedThere, RebasedMoved, RebasedMerged, RebasedAgain, RebasedResolved, RebasedSkipped} {
		if count[how] > 0 {
			text += fmt.Sprintf("\t%d %s", count[how], how)
		}
	}
	return text
}

// Rebase carries the patches of one series to the release of another, and writes them to the other's patch
// files; or those of a series to another release of its minor, if to is from with another release (see Repin).
// It works in a separate repository under trees/rebase that has the objects of both releases, so that git can
// merge. What the user adapted in an earlier carry is kept until the original patch changes. It returns the
// result for each patch, and the files that it wrote; no results if there was nothing to do.
//
// At a conflict the error is a *RebaseConflictError. The next call continues from there, and
// also after an interruption; with skip it leaves out the patch at which the last one stopped. Edits
// in the tree of either series are ErrEdited.
func Rebase(ctx context.Context, l layout.Layout, from, to series.Series, skip bool, step *progress.Step) (done []Rebased, written *Written, err error) {
	return newRebase(l, from, to, skip, step).run(ctx)
}

// AbortRebase drops a rebase to the series to. It does not change the series' files.
func AbortRebase(ctx context.Context, l layout.Layout, to series.Series, step *progress.Step) error {
	r := newRebase(l, series.Series{}, to, false, step)
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

// RebasesInProgress returns the rebases in progress: the names of the series that are written,
// mapped to those of the series that the patches come from.
func RebasesInProgress(l layout.Layout) (map[string]string, error) {
	names, _ := fs.Glob(os.DirFS(l.Rebase("")), "*") // only a wrong pattern is an error
	found := map[string]string{}
	for _, name := range names {
		st, err := readRebaseState(l.Rebase(name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[name] = st.From
	}
	return found, nil
}

// rebase is one run of Rebase: an assembly of the series to that is in another folder and merges patches.
type rebase struct {
	*assembly
	from    series.Series
	skip    bool
	rebased *rebaseState
}

func newRebase(l layout.Layout, from, to series.Series, skip bool, step *progress.Step) *rebase {
	r := &rebase{assembly: newAssembly(l, to, Options{}, step), from: from, skip: skip}
	r.tree.Dir = l.Rebase(to.Name)
	return r
}

// moves reports whether the series moves to another release of its minor.
func (r *rebase) moves() bool { return r.from.Name == r.series.Name }

func (r *rebase) run(ctx context.Context) ([]Rebased, *Written, error) {
	inProgress, err := r.isInProgress()
	if err != nil {
		return nil, nil, err
	}
	if r.from.Release == r.series.Release && !inProgress {
		r.step.Cached("based on " + r.series.Release + " already")
		return nil, nil, nil
	}
	var source *Tree
	if !inProgress {
		// Its repository has the files that the patches were made from.
		r.step.Now("looking at the tree of %s", r.from.Name)
		a := newAssembly(r.layout, r.from, Options{}, nil)
		a.gen = r.gen
		if source, err = a.run(ctx); err != nil {
			return nil, nil, err
		}
	}
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	// Another podenv may have held the lock.
	if now, err := r.isInProgress(); err != nil {
		return nil, nil, err
	} else if now != inProgress {
		return nil, nil, fmt.Errorf("another podenv has rebased to %s meanwhile: look at its result, and run the command again", r.series.Name)
	}
	if !inProgress {
		started, err := r.start(ctx, source)
		if err != nil || !started {
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
		return fmt.Errorf("the rebase to %s was interrupted; the next run continues: %w", r.series.Name, ctx.Err())
	}
	return err
}

func (r *rebase) isInProgress() (bool, error) {
	var err error
	if r.rebased, err = readRebaseState(r.tree.Dir); errors.Is(err, os.ErrNotExist) {
		if r.skip {
			return false, fmt.Errorf("no rebase to series %s is in progress: there is nothing to skip", r.series.Name)
		}
		return false, nil
	}
	if err == nil && r.rebased.From != r.from.Name {
		err = fmt.Errorf("a rebase from %s to %s is in progress: finish it with `podenv rebase --continue`, or drop it with --abort", r.rebased.From, r.series.Name)
	}
	return true, err
}

// start creates the repository of the rebase, unless there is nothing to carry.
func (r *rebase) start(ctx context.Context, source *Tree) (started bool, err error) {
	if err := r.copyForms(); err != nil {
		return false, err
	}
	if r.in, err = readInputs(r.series, false); err != nil {
		return false, err
	}
	tree := newAssembly(r.layout, r.series, Options{}, r.step)
	tree.key = r.in.key()
	if _, err := tree.find(ctx); err != nil {
		return false, err // it has edits
	}
	from, errFrom := readPatches(r.from)
	earlier, errEarlier := readCarried(r.series)
	if err := errors.Join(errFrom, errEarlier); err != nil {
		return false, err
	}
	now := carriedOf(from)
	for i := range from {
		if from[i], err = newPatch(from[i].path, from[i].stored, r.series); err != nil {
			return false, fmt.Errorf("carrying %s to %s: %w", from[i].name(), r.series.Name, err)
		}
	}
	into := r.in.patches
	if r.moves() {
		into, earlier = nil, nil // all patches are carried
	}
	patches := plan(r.from.Name, from, into, earlier)
	if !r.moves() && matchesPlan(patches, r.in.patches) && slices.Equal(earlier, now) {
		r.step.Cached("nothing to carry")
		return false, nil
	}
	if err := r.remove(); err != nil {
		return false, err
	}
	if err := r.create(ctx); err != nil {
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
	r.rebased, err = newRebaseState(r.tree.Dir, r.from.Name, r.series.Release, patches, now, r.state.last())
	return true, err
}

// copyForms gives a series without patches the forms of new files that only r.from has.
func (r *rebase) copyForms() error {
	if len(r.series.Patches()) > 0 {
		return nil
	}
	from, _ := r.from.NewFileFolders()
	to, _ := r.series.NewFileFolders()
	if _, err := os.Stat(to); err == nil {
		return nil // it has its own
	}
	err := os.CopyFS(to, os.DirFS(from))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there are none
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(to))
	}
	return nil
}

// addAlternates lets git read the objects of the given trees that exist. The trees must not be
// deleted before r.
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
	files := map[string][]byte{carriedName: r.rebased.Carried.format(r.rebased.From)}
	if r.moves() {
		if files, err = pinFiles(r.series); err != nil {
			return written, err
		}
	}
	for _, name := range sortedKeys(files) {
		if err := r.writeFile(name, files[name], written); err != nil {
			return written, err
		}
	}
	return written, r.remove()
}

// remove deletes the repository. It first deletes the state, which marks a rebase in progress.
func (r *rebase) remove() error {
	if err := os.RemoveAll(rebaseStateDir(r.tree.Dir)); err != nil {
		return err
	}
	return os.RemoveAll(r.tree.Dir)
}
