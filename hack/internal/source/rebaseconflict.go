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
	"podenv.dev/hack/internal/series"
)

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
