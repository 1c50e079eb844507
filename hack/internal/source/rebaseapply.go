package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// rebaseState is the state of a rebase, stored in its repository. The patches are stored there
// too, so that edits of their series do not change a rebase in progress.
type rebaseState struct {
	From    string       `json:"from"`
	Release string       `json:"release"` // that the patches are merged into
	Carried carried      `json:"carried"` // the future content of patches/<minor>/carried
	Patches []rebaseStep `json:"patches"`
	Done    []Rebased    `json:"done,omitempty"`    // the results for the first len(Done) of Patches
	Head    string       `json:"head"`              // the commit of the last patch in Done
	Stopped bool         `json:"stopped,omitempty"` // while the user resolves the next patch
}

// rebaseStep is a patch to apply.
type rebaseStep struct {
	Title string `json:"title"`
	File  string `json:"file"` // its path in the repository
	Name  string `json:"name"` // its file name in the series
	// Series is the series that it is carried from; empty if it is already in the series that is written.
	Series string `json:"series"`
	// Message replaces the message of a patch that is kept, if that of the original has changed.
	Message string `json:"message,omitempty"`
	Before  string `json:"before,omitempty"` // the name of the patch file of an earlier carry
	// Adapted is set if the changes in Before differ from those of the original at that time:
	// the user adapted them.
	Adapted bool `json:"adapted,omitempty"`
}

func rebaseStateDir(dir string) string { return filepath.Join(dir, ".git", "podenv", "rebase") }

func newRebaseState(dir, from, release string, patches []planned, c carried, head string) (*rebaseState, error) {
	st := &rebaseState{From: from, Release: release, Carried: c, Head: head}
	if err := os.MkdirAll(rebaseStateDir(dir), 0o755); err != nil {
		return nil, err
	}
	for i, p := range patches {
		step := p.rebaseStep
		step.File = filepath.Join(rebaseStateDir(dir), fmt.Sprintf("%04d.patch", i+1))
		if err := os.WriteFile(step.File, p.content, 0o644); err != nil {
			return nil, err
		}
		st.Patches = append(st.Patches, step)
	}
	return st, st.write(dir)
}

func rebaseStateFile(dir string) string { return filepath.Join(rebaseStateDir(dir), "state.json") }

func (st *rebaseState) write(dir string) error { return jsonout.Save(rebaseStateFile(dir), st) }

// readRebaseState returns os.ErrNotExist if no rebase is in progress.
func readRebaseState(dir string) (*rebaseState, error) {
	var st rebaseState
	if err := readJSON(rebaseStateFile(dir), dir, &st); err != nil {
		return nil, err
	}
	return &st, nil
}

// apply applies the remaining patches one by one.
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

// resume finishes or resets the patch at which the last run ended.
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
	case r.skip && (!r.rebased.Stopped || moved):
		return errors.New("the rebase has not stopped at a patch: there is nothing to skip")
	case r.skip:
		if err := r.tree.moveTo(ctx, head); err != nil {
			return err
		}
		return r.recordDone(ctx, RebasedSkipped)
	case r.rebased.Stopped && moved:
		return r.recordDone(ctx, RebasedResolved) // the user ran `git am --continue`
	case r.rebased.Stopped && r.tree.inProgress():
		return r.continueResolved(ctx)
	}
	// The run was interrupted, or the user ran `git am --abort`: apply the patch again.
	if err := r.tree.unlock(); err != nil {
		return err
	}
	return r.tree.moveTo(ctx, r.rebased.Head)
}

// continueResolved commits what the user has resolved.
func (r *rebase) continueResolved(ctx context.Context) error {
	err := r.unresolved(ctx)
	var conflict *RebaseConflictError
	if errors.As(err, &conflict) {
		conflict.Remaining = !conflict.Unmerged
	}
	if err != nil {
		return err
	}
	if err := r.tree.Run(ctx, "add", "--all"); err != nil {
		return err
	}
	if err := r.tree.Run(ctx, "am", "--continue"); err != nil {
		return fmt.Errorf("going on with the patch: %w; in %s, `git status` says more", err, r.tree.Dir)
	}
	return r.recordDone(ctx, RebasedResolved)
}

// recordDone records the result for the next patch.
func (r *rebase) recordDone(ctx context.Context, how string) error {
	head, err := r.tree.head(ctx)
	if err != nil {
		return err
	}
	p := r.rebased.Patches[len(r.rebased.Done)]
	r.rebased.Done = append(r.rebased.Done, Rebased{Title: p.Title, How: how})
	r.rebased.Head, r.rebased.Stopped = head, false
	return r.rebased.write(r.tree.Dir)
}

// fit is how git am will apply the patch, if it does.
func (r *rebase) fit(ctx context.Context, p rebaseStep) string {
	var output bytes.Buffer
	err := r.tree.Cmd(ctx, "apply", "--check", "--verbose", "--index", "--whitespace=nowarn", p.File).Log(&output).Run()
	switch {
	case err != nil:
		return RebasedMerged
	case bytes.Contains(output.Bytes(), []byte(" succeeded at ")):
		return RebasedMoved
	}
	return RebasedApplied
}

func (r *rebase) applyOne(ctx context.Context, p rebaseStep) error {
	how := r.fit(ctx, p)
	// The conflicts of the merge include the common ancestor, which shows what the patch changes.
	amErr := r.tree.Run(ctx, slices.Concat([]string{"-c", "merge.conflictStyle=diff3"}, amFlags, []string{"--3way", p.File})...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if amErr != nil && !r.tree.inProgress() {
		return fmt.Errorf("applying %s: %w", p.Name, amErr)
	}
	if amErr != nil {
		r.rebased.Stopped = true
		if err := r.rebased.write(r.tree.Dir); err != nil {
			return err
		}
		if err := r.unresolved(ctx); err != nil {
			return err
		}
		return fmt.Errorf("git am stopped at %s without a conflict: %w", p.Name, amErr)
	}
	head, err := r.tree.head(ctx)
	if err != nil {
		return err
	}
	switch {
	case head == r.rebased.Head:
		how = RebasedThere
	case p.Series == "":
		how = RebasedKept
	case p.Adapted:
		how = RebasedAgain
	}
	if p.Message != "" && head != r.rebased.Head {
		err := r.tree.Cmd(ctx, "commit", "--quiet", "--amend", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--file=-").
			Stdin(strings.NewReader(p.Message)).Run()
		if err != nil {
			return err
		}
	}
	return r.recordDone(ctx, how)
}

// RebaseConflictError reports the patch at which a rebase stopped.
type RebaseConflictError struct {
	From, To string // the series of the patch, and the one that is written
	Release  string // that the patch is merged into
	Patch    string // the name of the patch file
	// Files have conflict markers, or are rejected hunks (*.rej), relative to Dir.
	Files []string
	// OneSided are those of Files that only one side has: the patch changes a file that the
	// release does not have, or deletes one that differs in the release.
	OneSided  []string
	Unmerged  bool   // git could not merge; Files are all files of the patch
	Remaining bool   // the user wants to continue, but has not resolved Files
	Before    string // the patch file of an earlier carry of the patch, if any
	Dir       string // the repository in which the user resolves the conflict
}

// Error includes the commands that resolve the conflict.
func (e *RebaseConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of series %s conflicts with %s in %s\n", e.Patch, e.From, e.Release, abbreviate(e.Files))
	if e.Remaining {
		b.WriteString("  it is not resolved yet: these files still have conflict markers, or were neither kept nor dropped\n")
	}
	dir := run.Quote(e.Dir)
	if e.Unmerged {
		fmt.Fprintf(&b, "  git cannot merge it; apply what fits, edit the rest by the *.rej files and delete these:\n    git -C %s apply --reject .git/rebase-apply/patch\n", dir)
	} else {
		fmt.Fprintf(&b, "  the files are there with conflict markers; edit them: cd %s\n", dir)
	}
	if len(e.OneSided) > 0 {
		fmt.Fprintf(&b, "  only one side has %s: put the change where it belongs, and keep the file with `git add` or drop it with `git rm`\n", abbreviate(e.OneSided))
	}
	if e.Before != "" {
		fmt.Fprintf(&b, "  how it was resolved before: %s\n", e.Before)
	}
	b.WriteString("  when it is resolved: podenv rebase --continue\n")
	fmt.Fprintf(&b, "  or leave this patch out of %s: podenv rebase --skip; or give up: podenv rebase --abort", e.To)
	return b.String()
}

// conflictMark matches the first and last line of a conflict.
var conflictMark = regexp.MustCompile(`(?m)^(<{7}|>{7}) `)

// unresolved returns the conflict at which the rebase stopped as a *RebaseConflictError, or nil if
// it is resolved.
func (r *rebase) unresolved(ctx context.Context) error {
	p := r.rebased.Patches[len(r.rebased.Done)]
	c := &RebaseConflictError{From: r.rebased.From, To: r.series.Name, Release: r.series.Release, Patch: p.Name, Dir: r.tree.Dir}
	if p.Series == "" {
		c.From = r.series.Name
	}
	if p.Before != "" {
		c.Before = r.relative(filepath.Join(r.series.Dir, p.Before))
	}
	changed, err := r.tree.status(ctx)
	if err != nil {
		return err
	}
	if len(changed) == 0 {
		// git could not merge, because it lacks the files that the patch was made from.
		full, err := os.ReadFile(p.File)
		if err != nil {
			return err
		}
		patch, err := newPatch(p.File, full, series.Series{})
		if err != nil {
			return err
		}
		c.Unmerged = true
		for _, f := range patch.files {
			c.Files = append(c.Files, f.NewName)
		}
		return c
	}
	for _, entry := range changed {
		status, file := entry[:2], entry[3:]
		isOneSided := slices.Contains([]string{"AU", "UA", "DU", "UD"}, status)
		if isOneSided {
			c.OneSided = append(c.OneSided, file)
		}
		data, err := os.ReadFile(filepath.Join(r.tree.Dir, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if conflictMark.Match(data) || strings.HasSuffix(file, ".rej") || isOneSided {
			c.Files = append(c.Files, file)
		}
	}
	if len(c.Files) == 0 {
		return nil
	}
	return c
}
