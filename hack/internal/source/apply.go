package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"podenv.dev/hack/internal/run"
)

// amFlags make `git am` apply a patch byte for byte and use the author date as the committer
// date. There is no 3-way merge, because users apply a series with plain `git am`: a merge would
// hide that a patch no longer applies.
var amFlags = []string{
	"am", "--no-3way", "--keep-cr", "--keep-non-patch", "--no-scissors", "--whitespace=nowarn",
	"--committer-date-is-author-date", "--no-gpg-sign",
}

// applyPatches commits the patches that are not commits of the tree yet. It passes all of them
// to one `git am`, so that after a conflict `git am --continue` applies the rest too.
func (a *assembly) applyPatches(ctx context.Context) error {
	patches := a.in.patches[a.state.applied():]
	if len(patches) == 0 {
		return nil
	}
	if err := a.refuseReleased(ctx, patches); err != nil {
		return err
	}
	a.step.Now("applying %d of %d patches", len(patches), len(a.in.patches))
	args := slices.Clone(amFlags)
	if a.options.Stock {
		args = append(args, "--3way") // each fix is made on the release
	}
	var mails bytes.Buffer
	for _, p := range patches {
		mails.Write(p.content)
		mails.WriteByte('\n')
	}
	amErr := a.tree.Cmd(ctx, args...).Stdin(&mails).Run()
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
	return errors.Join(conflict, writeState(a.tree.Dir, a.state))
}

// refuseReleased refuses patches that add a file which the release has.
func (a *assembly) refuseReleased(ctx context.Context, patches []patchFile) error {
	var added []string
	for _, p := range patches {
		for _, f := range p.newFiles {
			added = append(added, f.path)
		}
	}
	if len(added) == 0 {
		return nil
	}
	args := []string{"ls-tree", "-r", "-z", "--name-only", a.state.Steps[0].Commit, "--"}
	released, err := a.tree.Fields(ctx, append(args, added...)...)
	for _, p := range patches {
		if len(released) > 0 && p.adds(released[0]) {
			return fmt.Errorf("%s of series %s adds the new file %s, which %s has: write the change of it as a diff, and delete the line from the message", p.name(), a.series.Name, released[0], a.series.Release)
		}
	}
	return err
}

// recordPatches records the commits that `git am` made, which are those of the first patches.
func (a *assembly) recordPatches(ctx context.Context, patches []patchFile) error {
	commits, err := a.tree.Lines(ctx, "rev-list", "--reverse", a.state.last()+"..HEAD")
	if err != nil {
		return err
	}
	if len(commits) > len(patches) {
		return fmt.Errorf("git am made %d commits of %d patches", len(commits), len(patches))
	}
	for i, commit := range commits {
		a.state.Steps = append(a.state.Steps, stateStep{Kind: kindPatch, Input: patches[i].hash, Commit: commit})
	}
	return writeState(a.tree.Dir, a.state)
}

// ConflictError reports a patch that does not apply. The tree is left where `git am` stopped.
type ConflictError struct {
	Series  string `json:"series"`  // of the patch
	Release string `json:"release"` // that it does not apply to
	Patch   string `json:"patch"`   // the name of the patch file
	File    string `json:"file"`    // the first file to which it does not apply, relative to the tree
	// Hunk is the header of the first hunk that does not apply, as in "@@ -1,7 +1,8 @@";
	// empty if the patch does not apply to the file at all.
	Hunk   string `json:"hunk,omitempty"`
	Line   int    `json:"line,omitempty"`  // of the patch file, at which the hunk starts, counted from 1
	Reason string `json:"reason"`          // git's error message
	Merge  bool   `json:"merge,omitempty"` // the tree's repository has the objects for a 3-way merge
	Dir    string `json:"-"`               // path of the tree
	Key    string `json:"key"`             // hash of the inputs that caused the conflict
}

// Error includes the commands that resolve the conflict.
func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of series %s does not apply to %s: %s", e.Patch, e.Series, e.Release, e.File)
	if e.Hunk != "" {
		fmt.Fprintf(&b, ", hunk %s (line %d of the patch)", e.Hunk, e.Line)
	}
	fmt.Fprintf(&b, ": %s\n  the tree is left where git am stopped: %s\n", e.Reason, e.Dir)
	dir := run.Quote(e.Dir)
	if e.Merge {
		fmt.Fprintf(&b, "  merge it with conflict markers: git -C %s apply --3way .git/rebase-apply/patch\n", dir)
	} else {
		fmt.Fprintf(&b, "  apply what fits, edit the rest by the *.rej files and delete these: git -C %s apply --reject .git/rebase-apply/patch\n", dir)
	}
	fmt.Fprintf(&b, "  when it is resolved:\n    git -C %s add -A && git -C %s am --continue\n    podenv patches --series %s\n", dir, dir, e.Series)
	fmt.Fprintf(&b, "  or start over: podenv tree --series %s --discard", e.Series)
	return b.String()
}

// conflict finds the patch, file and hunk at which `git am` stopped.
func (a *assembly) conflict(ctx context.Context) (*ConflictError, error) {
	done := a.state.applied()
	if done >= len(a.in.patches) {
		return nil, fmt.Errorf("git am stopped after the last patch, in %s", a.tree.Dir)
	}
	patch := a.in.patches[done]
	c := &ConflictError{
		Series: a.series.Name, Release: a.series.Release, Patch: patch.name(),
		Reason: "git am refuses it", Dir: a.tree.Dir, Key: a.key, Merge: a.tree.canMerge(ctx),
	}
	var output bytes.Buffer
	// It fails like git am did. Its error would have only the end of the output.
	_ = a.tree.Cmd(ctx, "apply", "--check", "--index", "--whitespace=nowarn", ".git/rebase-apply/patch").Log(&output).Run()
	c.locate(output.String(), patch)
	return c, ctx.Err()
}

var (
	hunkFailed = regexp.MustCompile(`(?m)^error: patch failed: (.+):(\d+)$`)
	fileFailed = regexp.MustCompile(`(?m)^error: (.+?): (.+)$`)
	hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@`)
)

// locate reads the file and the hunk from the output of `git apply --check`.
func (c *ConflictError) locate(output string, patch patchFile) {
	if m := hunkFailed.FindStringSubmatch(output); m != nil {
		c.File, c.Reason = m[1], "patch does not apply"
		start, _ := strconv.Atoi(m[2])
		c.Hunk, c.Line = findHunk(patch.stored, m[1], start)
		return
	}
	if m := fileFailed.FindStringSubmatch(output); m != nil {
		c.File, c.Reason = m[1], m[2]
	}
}

// findHunk returns the header of the hunk that starts at line start of the old file, and the
// line of that header in the patch.
func findHunk(patch []byte, file string, start int) (header string, line int) {
	inFile := false
	for text := range strings.Lines(string(patch)) {
		line++
		text = strings.TrimRight(text, "\r\n")
		switch {
		case strings.HasPrefix(text, "diff --git "):
			inFile = strings.HasPrefix(text, "diff --git a/"+file+" ")
		case inFile:
			if m := hunkHeader.FindStringSubmatch(text); m != nil && m[1] == strconv.Itoa(start) {
				return text, line
			}
		}
	}
	return "", 0
}

// canMerge reports whether a 3-way merge of the patch at which git stopped is possible. It is
// not if the repository lacks the blobs that the patch was made from, or if someone edited the
// old lines in the patch file.
func (r repo) canMerge(ctx context.Context) bool {
	return r.Run(ctx, "apply", "--check", "--3way", "--whitespace=nowarn", ".git/rebase-apply/patch") == nil
}

// stopped returns the conflict or other git operation in progress as an error, or nil.
func (r repo) stopped(st *state) error {
	if !r.inProgress() {
		return nil
	}
	if st.Conflict != nil {
		return st.Conflict
	}
	if _, err := os.Stat(r.Path("rebase-merge")); err == nil {
		return fmt.Errorf("a git rebase is in progress in %s: finish it (`git -C %s rebase --continue`) or drop it (--abort)", r.Dir, run.Quote(r.Dir))
	}
	return fmt.Errorf("a git am or rebase is in progress in %s: `git -C %s status` says how to finish it", r.Dir, run.Quote(r.Dir))
}
