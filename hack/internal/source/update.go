package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// settleTime is how long an interrupted assembly may take to put the tree in order.
const settleTime = time.Minute

// update makes the commits that follow the last step whose input is unchanged.
func (a *assembly) update(ctx context.Context) error {
	// Commits that WritePatches saved, for example, are no step of ours.
	if err := a.keepForeign(ctx); err != nil {
		return err
	}
	steps := a.unchanged()
	a.state = &state{Busy: true, Steps: a.state.Steps, Written: a.state.Written, Patches: a.in.storedHashes(), NewFiles: a.in.files()}
	if err := writeState(a.tree.dir, a.state); err != nil {
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
	if err := writeState(a.tree.dir, a.state); err != nil {
		return err
	}
	if !a.options.Stock {
		for _, commit := range []func(context.Context) error{a.commitNewFiles, a.applyPatches, a.commitGenerated} {
			if err := commit(ctx); err != nil {
				return err
			}
		}
	}
	a.state.Key, a.state.Busy = a.key, false
	return writeState(a.tree.dir, a.state)
}

// unchanged is the longest start of the recorded steps that the inputs would give again.
func (a *assembly) unchanged() []stateStep {
	var want []stateStep
	want = append(want, stateStep{Kind: kindRelease, Input: a.in.release})
	if len(a.in.newFiles) > 0 {
		want = append(want, stateStep{Kind: kindNewFiles, Input: a.in.newHash})
	}
	for _, p := range a.in.patches {
		want = append(want, stateStep{Kind: kindPatch, Input: p.hash})
	}
	n := 0
	for n < len(want) && n < len(a.state.Steps) &&
		a.state.Steps[n].Kind == want[n].Kind && a.state.Steps[n].Input == want[n].Input {
		n++
	}
	return append([]stateStep(nil), a.state.Steps[:n]...)
}

// fetchRelease brings another release's commit into the tree's repository.
func (a *assembly) fetchRelease(ctx context.Context) (string, error) {
	release, err := pristine(ctx, a.layout, a.series, a.in.release, a.step)
	if err != nil {
		return "", err
	}
	if err := a.tree.git(ctx, "fetch", "--quiet", "--no-tags", "--no-auto-maintenance", release.dir, releaseBranch); err != nil {
		return "", err
	}
	commit, err := release.quiet(ctx, "rev-parse", releaseBranch)
	if err != nil {
		return "", err
	}
	// `git diff release` is what a person types.
	return commit, a.tree.git(ctx, "update-ref", releaseBranch, commit)
}

// commitNewFiles commits the files of this module, unless that step is done.
func (a *assembly) commitNewFiles(ctx context.Context) error {
	if len(a.in.newFiles) == 0 || len(a.state.Steps) > 1 {
		return nil
	}
	a.step.Now("committing %d new files", len(a.in.newFiles))
	var paths []string
	for _, f := range a.in.newFiles {
		path := filepath.Join(a.tree.dir, filepath.FromSlash(f.path))
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s is a file of %s already: a change of it is a patch, not a new file", f.path, a.series.Release)
		}
		if err := f.write(a.tree.dir); err != nil {
			return err
		}
		paths = append(paths, f.path)
	}
	text := message(kindNewFiles, "Add the new files of podenv", "The same files, at the same paths, go into the tree of every series.")
	return a.commitPaths(ctx, kindNewFiles, a.in.newHash, paths, text)
}

// commitPaths commits paths as one step.
func (a *assembly) commitPaths(ctx context.Context, k kind, input string, paths []string, text string) error {
	err := a.tree.cmd(ctx, "add", "--all", "--force", "--pathspec-from-file=-", "--pathspec-file-nul").Stdin(pathspecs(paths)).Run()
	if err != nil {
		return err
	}
	date, err := a.tree.commitDate(ctx, a.state.Steps[0].Commit)
	if err != nil {
		return err
	}
	commit, err := a.tree.commit(ctx, text, date)
	if err != nil {
		return err
	}
	a.state.Steps = append(a.state.Steps, stateStep{Kind: k, Input: input, Commit: commit})
	return writeState(a.tree.dir, a.state)
}

// settle puts the tree in order after err: at the last commit that was made, with no
// file changed. A tree that stopped at a conflict is in order.
func (a *assembly) settle(ctx context.Context, err error) error {
	var conflict *ConflictError
	if err == nil || errors.As(err, &conflict) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	settleErr := a.tree.unlock()
	if settleErr == nil {
		settleErr = a.tree.moveTo(ctx, a.state.last())
	}
	if settleErr != nil {
		// The state still says busy: the next assembly tries again.
		return errors.Join(err, fmt.Errorf("the tree is left half-made and the next `podenv tree` puts it in order: %w", settleErr))
	}
	a.state.Busy = false
	return errors.Join(err, writeState(a.tree.dir, a.state))
}
