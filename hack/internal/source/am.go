package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// amFlags make `git am` take a patch as it is: byte for byte, with its author's date as
// the only date, and nothing guessed. A series is for `git am` in anyone's checkout, so
// there is no 3-way merge that would hide that a patch no longer applies.
var amFlags = []string{
	"am", "--no-3way", "--keep-cr", "--keep-non-patch", "--no-scissors", "--whitespace=nowarn",
	"--committer-date-is-author-date", "--no-gpg-sign",
}

// applyPatches commits the patches that are not commits of the tree yet. They go through
// one `git am`, so that after a conflict `git am --continue` goes on with the rest.
func (a *assembly) applyPatches(ctx context.Context) error {
	first := 1
	if len(a.in.newFiles) > 0 {
		first = 2
	}
	patches := a.in.patches[len(a.state.Steps)-first:]
	if len(patches) == 0 {
		return nil
	}
	if err := a.refuseReleased(ctx, patches); err != nil {
		return err
	}
	a.step.Now("applying %d of %d patches", len(patches), len(a.in.patches))
	folder, err := os.MkdirTemp(filepath.Dir(stateFile(a.tree.dir)), "whole-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) // git am has read them all when it stops
	args := append([]string(nil), amFlags...)
	args = append(args, "--")
	for _, p := range patches {
		whole := filepath.Join(folder, p.name())
		if err := os.WriteFile(whole, p.content, 0o644); err != nil {
			return err
		}
		args = append(args, whole)
	}
	amErr := a.tree.git(ctx, args...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := a.recordPatches(ctx, patches); err != nil {
		return errors.Join(amErr, err)
	}
	if amErr == nil {
		return nil
	}
	if !a.tree.inProgress() {
		return fmt.Errorf("applying the patches: %w", amErr)
	}
	conflict, err := a.conflict(ctx)
	if err != nil {
		return errors.Join(amErr, err)
	}
	a.state.Busy, a.state.Conflict = false, conflict
	if err := writeState(a.tree.dir, a.state); err != nil {
		return errors.Join(conflict, err)
	}
	return conflict
}

// refuseReleased refuses new files that the release has.
func (a *assembly) refuseReleased(ctx context.Context, patches []patchFile) error {
	args := []string{"ls-tree", "-r", "-z", "--name-only", a.state.Steps[0].Commit, "--"}
	none := len(args)
	for _, p := range patches {
		for _, f := range p.newFiles {
			args = append(args, f.path)
		}
	}
	if len(args) == none {
		return nil
	}
	released, err := a.tree.fields(ctx, args...)
	if err != nil || len(released) == 0 {
		return err
	}
	for _, p := range patches {
		if p.brings(released[0]) {
			return fmt.Errorf("%s of series %s brings the new file %s, which %s has: write the change of it as a diff, and delete the line from the message", p.name(), a.series.Name, released[0], a.series.Release)
		}
	}
	return fmt.Errorf("%s has the new files %s", a.series.Release, some(released))
}

// recordPatches notes the commits that `git am` made of the first of patches.
func (a *assembly) recordPatches(ctx context.Context, patches []patchFile) error {
	commits, err := a.tree.lines(ctx, "rev-list", "--reverse", a.state.last()+"..HEAD")
	if err != nil {
		return err
	}
	if len(commits) > len(patches) {
		return fmt.Errorf("git am made %d commits of %d patches", len(commits), len(patches))
	}
	for i, commit := range commits {
		a.state.Steps = append(a.state.Steps, stateStep{Kind: kindPatch, Input: patches[i].hash, Commit: commit})
	}
	return writeState(a.tree.dir, a.state)
}
