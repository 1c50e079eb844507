package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// apply applies the patches that are not done yet, one by one.
func (r *rebase) apply(ctx context.Context) error {
	if err := r.resume(ctx); err != nil {
		return err
	}
	for len(r.rebased.Done) < len(r.rebased.Patches) {
		p := r.rebased.Patches[len(r.rebased.Done)]
		r.step.Now("patch %d of %d: %s", len(r.rebased.Done)+1, len(r.rebased.Patches), p.Title)
		if err := r.applyOne(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// resume settles the patch at which the last run ended.
func (r *rebase) resume(ctx context.Context) error {
	if len(r.rebased.Done) == len(r.rebased.Patches) {
		return nil
	}
	head, err := r.tree.head(ctx)
	if err != nil {
		return err
	}
	moved := head != r.rebased.Head
	switch {
	case r.options.Skip && (!r.rebased.Stopped || moved):
		return errors.New("the rebase has not stopped at a patch: there is nothing to skip")
	case r.options.Skip:
		if err := r.tree.moveTo(ctx, head); err != nil {
			return err
		}
		return r.done(ctx, RebasedSkipped)
	case r.rebased.Stopped && moved:
		return r.done(ctx, RebasedResolved) // with a `git am --continue` of a person's
	case r.rebased.Stopped && r.tree.inProgress():
		return r.goOn(ctx)
	}
	// It was interrupted, or the person typed `git am --abort`: the patch is applied again.
	if err := r.tree.unlock(); err != nil {
		return err
	}
	return r.tree.moveTo(ctx, r.rebased.Head)
}

// goOn commits what a person has resolved.
func (r *rebase) goOn(ctx context.Context) error {
	conflict, err := r.unresolved(ctx)
	if err != nil {
		return err
	}
	if conflict != nil {
		return conflict
	}
	if err := r.tree.git(ctx, "add", "--all"); err != nil {
		return err
	}
	if err := r.tree.git(ctx, "am", "--continue"); err != nil {
		return fmt.Errorf("going on with the patch: %w; in %s, `git status` says more", err, r.tree.dir)
	}
	return r.done(ctx, RebasedResolved)
}

// done notes what became of the next patch.
func (r *rebase) done(ctx context.Context, how string) error {
	head, err := r.tree.head(ctx)
	if err != nil {
		return err
	}
	p := r.rebased.Patches[len(r.rebased.Done)]
	r.rebased.Done = append(r.rebased.Done, Rebased{Title: p.Title, How: how})
	r.rebased.Head, r.rebased.Stopped = head, false
	return r.rebased.write(r.tree.dir)
}

// mergeFlags are amFlags, but for the 3-way merge; its conflicts show the common ancestor
// too, which says what the patch changes of it.
func mergeFlags() []string {
	flags := slices.Clone(amFlags)
	flags[slices.Index(flags, "--no-3way")] = "--3way"
	return append([]string{"-c", "merge.conflictStyle=diff3"}, flags...)
}

func (r *rebase) applyOne(ctx context.Context, p rebaseStep) error {
	amErr := r.tree.git(ctx, append(mergeFlags(), "--", p.File)...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if amErr != nil && !r.tree.inProgress() {
		return fmt.Errorf("applying %s: %w", p.Name, amErr)
	}
	if amErr != nil {
		r.rebased.Stopped = true
		if err := r.rebased.write(r.tree.dir); err != nil {
			return err
		}
		conflict, err := r.unresolved(ctx)
		if err == nil && conflict == nil {
			err = fmt.Errorf("git am stopped at %s without a conflict: %w", p.Name, amErr)
		}
		if err != nil {
			return err
		}
		return conflict
	}
	head, err := r.tree.head(ctx)
	if err != nil {
		return err
	}
	how := RebasedApplied
	switch {
	case head == r.rebased.Head:
		how = RebasedThere
	case p.Series == "":
		how = RebasedKept
	case p.Adapted:
		how = RebasedAnew
	}
	if p.Message != "" && head != r.rebased.Head {
		err := r.tree.cmd(ctx, "commit", "--quiet", "--amend", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--file=-").
			Stdin(strings.NewReader(p.Message)).Run()
		if err != nil {
			return err
		}
	}
	return r.done(ctx, how)
}
