package source

import (
	"context"
	"errors"
	"fmt"
	"os"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// ErrUncommitted is returned by WritePatches for a tree with changes that are in no commit.
var ErrUncommitted = errors.New("the tree has changes that are not committed")

// WritePatches writes the commits of the tree of s, a person's on top included, back to
// the series' patch files, and edits of new files back to this module. Generated code is
// left out. It returns the files that it wrote or deleted, relative to the repository's
// root; the same commits give the same bytes.
//
// The tree must have everything committed, else the error is ErrUncommitted, and no
// `git am` in progress, else it is the *ConflictError. Files that the tree was not made from
// are left alone, with ErrNewerPatches. A new file that was edited here and
// in the tree alike is an error, and nothing is written.
func WritePatches(ctx context.Context, l layout.Layout, s series.Series, step *progress.Step) (changed []string, err error) {
	return newAssembly(l, s, Options{}, step).writePatches(ctx)
}

func (a *assembly) writePatches(ctx context.Context) ([]string, error) {
	unlock, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return a.writeCommits(ctx)
}

// writeCommits is WritePatches for whoever holds the tree's lock.
func (a *assembly) writeCommits(ctx context.Context) ([]string, error) {
	if err := a.readCommitted(ctx); err != nil {
		return nil, err
	}
	a.step.Now("reading the commits of %s", a.tree.dir)
	commits, err := a.tree.history(ctx)
	if err != nil {
		return nil, err
	}
	owners, err := a.tree.owners(ctx, a.gen, a.state)
	if err != nil {
		return nil, err
	}
	if err := a.tree.check(commits, a.state, owners); err != nil {
		return nil, err
	}
	edits, err := a.newFileEdits(ctx, commits, owners)
	if err != nil {
		return nil, err
	}
	a.step.Now("writing patches")
	changed, err := a.replacePatches(ctx, commits, owners)
	if err != nil {
		return changed, err
	}
	for _, e := range edits {
		if err := e.apply(a.layout.Root); err != nil {
			return changed, err
		}
		changed = append(changed, e.path)
	}
	a.state.Written = commits[len(commits)-1].id
	return changed, writeState(a.tree.dir, a.state)
}

// readCommitted reads the state of a tree whose commits say all.
func (a *assembly) readCommitted(ctx context.Context) error {
	st, err := readState(a.tree.dir)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w of %s: run %s", ErrNoTree, a.series.Name, treeCommand(a.series, false))
	}
	if err != nil {
		return err
	}
	a.state = st
	if st.Busy {
		return fmt.Errorf("%w of %s, only a half of one: run %s", ErrNoTree, a.series.Name, treeCommand(a.series, false))
	}
	if err := a.tree.stopped(st); err != nil {
		return err
	}
	dirty, err := a.tree.dirty(ctx)
	if err == nil && len(dirty) > 0 {
		dir := run.Quote(a.tree.dir)
		err = fmt.Errorf("%w: %s; commit them with `git -C %s commit --all`, or as part of an earlier patch with --fixup=<commit> and `git -C %s rebase --interactive --autosquash %s`",
			ErrUncommitted, some(dirty), dir, dir, st.Steps[0].Commit[:12])
	}
	return err
}
