package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/hack/internal/run"
)

// RebaseConflictError says at which patch a rebase has stopped, and what the user does next.
type RebaseConflictError struct {
	// From is the series that the patch is of, To the one that is written.
	From, To string
	// Release is what the patch is merged into.
	Release string
	// Patch is the name of the patch file.
	Patch string
	// Files have conflict markers, or are rejected hunks (*.rej), from the root of Dir.
	Files []string
	// Gone are those of Files that only one side has: the patch changes a file that the
	// release does not have, or deletes one that is another there.
	OneSided []string
	// Unmerged is set where git could not merge, and Files are those of the patch.
	Unmerged bool
	// Remaining is set where the user has asked to go on, and Files are not resolved yet.
	Remaining bool
	// Before is the patch file that an earlier carry of the patch gave; empty if none did.
	Before string
	// Dir is the repository in which the conflict is resolved.
	Dir string
}

// Error ends in the commands that go on from there.
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

// conflictMark starts a line that git puts around a conflict.
var conflictMark = regexp.MustCompile(`(?m)^(<{7}|>{7}) `)

// unresolved is the conflict at which the rebase stands; nil if it is resolved.
func (r *rebase) unresolved(ctx context.Context) (*RebaseConflictError, error) {
	p := r.rebased.Patches[len(r.rebased.Done)]
	c := &RebaseConflictError{From: r.rebased.From, To: r.series.Name, Release: r.series.Release, Patch: p.Name, Dir: r.tree.Dir}
	if p.Series == "" {
		c.From = r.series.Name
	}
	if p.Before != "" {
		c.Before = r.relative(filepath.Join(r.series.Dir, p.Before))
	}
	dirty, err := r.tree.dirty(ctx)
	if err != nil {
		return nil, err
	}
	if len(dirty) == 0 {
		// Not even a merge was possible: git has no file that the patch was made from.
		patch, err := readFullPatch(p.File)
		if err != nil {
			return nil, err
		}
		c.Unmerged = true
		for _, f := range patch.files {
			c.Files = append(c.Files, f.NewName)
		}
		return c, nil
	}
	if c.OneSided, err = r.tree.oneSided(ctx); err != nil {
		return nil, err
	}
	for _, file := range dirty {
		data, err := os.ReadFile(filepath.Join(r.tree.Dir, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if conflictMark.Match(data) || strings.HasSuffix(file, ".rej") || slices.Contains(c.OneSided, file) {
			c.Files = append(c.Files, file)
		}
	}
	if len(c.Files) == 0 {
		return nil, nil
	}
	return c, nil
}

// oneSided lists the unmerged files that only one side of a merge has.
func (r repo) oneSided(ctx context.Context) ([]string, error) {
	entries, err := r.Fields(ctx, "ls-files", "--unmerged", "-z")
	if err != nil {
		return nil, err
	}
	sides := map[string]int{}
	for _, e := range entries {
		about, file, _ := strings.Cut(e, "\t")
		if !strings.HasSuffix(about, " 1") { // 1 is the common ancestor
			sides[file]++
		}
	}
	var files []string
	for file, n := range sides {
		if n == 1 {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files, nil
}
