package source

import (
	"context"
	"errors"
	"fmt"
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
	a.step.Now("applying %d of %d patches", len(patches), len(a.in.patches))
	args := append([]string(nil), amFlags...)
	args = append(args, "--")
	for _, p := range patches {
		args = append(args, p.path)
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
