package source

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"podenv.dev/hack/internal/run"
)

// ConflictError says which patch does not apply, and where. The tree is left where
// `git am` stopped.
type ConflictError struct {
	// Series and Release are what the patch is of, and what it does not apply to.
	Series  string `json:"series"`
	Release string `json:"release"`
	// Patch is the name of the patch file, as in "0003-kubelet.patch".
	Patch string `json:"patch"`
	// File is the first file that the patch cannot change, from the root of the tree.
	File string `json:"file"`
	// Hunk is the header of the first hunk that does not apply, as in "@@ -1,7 +1,8 @@";
	// empty where it is the whole file.
	Hunk string `json:"hunk,omitempty"`
	// Line is where the hunk starts in the patch file, counted from 1.
	Line int `json:"line,omitempty"`
	// Reason is git's word for it.
	Reason string `json:"reason"`
	// Merge is set where the tree's repository has what git needs for a 3-way merge.
	Merge bool `json:"merge,omitempty"`
	// Dir is the tree.
	Dir string `json:"-"`
	// Key is the hash of the inputs that gave the conflict.
	Key string `json:"key"`
}

// Error ends in the commands that go on from there.
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

// conflict finds out where `git am` stopped.
func (a *assembly) conflict(ctx context.Context) (*ConflictError, error) {
	// The recorded steps are the patches that did apply.
	done := 0
	for _, step := range a.state.Steps {
		if step.Kind == kindPatch {
			done++
		}
	}
	if done >= len(a.in.patches) {
		return nil, fmt.Errorf("git am stopped after the last patch, in %s", a.tree.dir)
	}
	patch := a.in.patches[done]
	c := &ConflictError{
		Series: a.series.Name, Release: a.series.Release, Patch: patch.name(),
		Reason: "git am refuses it", Dir: a.tree.dir, Key: a.key, Merge: a.tree.canMerge(ctx, patch),
	}
	var said bytes.Buffer
	// It fails, as it did a moment ago: all that it prints is wanted, not only its end.
	_ = a.tree.cmd(ctx, "apply", "--check", "--index", "--whitespace=nowarn", ".git/rebase-apply/patch").Log(&said).Run()
	c.locate(said.String(), patch)
	return c, ctx.Err()
}

var (
	hunkFailed = regexp.MustCompile(`(?m)^error: patch failed: (.+):(\d+)$`)
	fileFailed = regexp.MustCompile(`(?m)^error: (.+?): (.+)$`)
	hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@`)
)

// locate reads the file and the hunk from what `git apply --check` said.
func (c *ConflictError) locate(said string, patch patchFile) {
	if m := hunkFailed.FindStringSubmatch(said); m != nil {
		c.File, c.Reason = m[1], "patch does not apply"
		start, _ := strconv.Atoi(m[2])
		c.Hunk, c.Line = findHunk(patch.stored, m[1], start)
		return
	}
	if m := fileFailed.FindStringSubmatch(said); m != nil {
		c.File, c.Reason = m[1], m[2]
	}
}

// findHunk finds the header of the hunk of file that starts at line start of the old
// file, and its line in the patch.
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

// canMerge tells whether git can merge the patch 3-way: the repository has the files
// that the patch was made from, and the patch applies to those. It does not where a
// person edited its old lines by hand.
func (r repo) canMerge(ctx context.Context, patch patchFile) bool {
	var index strings.Builder
	for _, f := range patch.files {
		if f.IsNew {
			continue
		}
		if _, err := r.quiet(ctx, "cat-file", "-e", f.OldOIDPrefix); f.OldOIDPrefix == "" || err != nil {
			return false
		}
		fmt.Fprintf(&index, "100644 %s\t%s\n", f.OldOIDPrefix, f.OldName)
	}
	scratch, err := os.MkdirTemp(r.gitPath(), "podenv-index-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // it is in the tree's repository
	env := "GIT_INDEX_FILE=" + filepath.Join(scratch, "index")
	if err := r.cmd(ctx, "update-index", "--index-info").Env(env).Stdin(strings.NewReader(index.String())).Run(); err != nil {
		return false
	}
	return r.cmd(ctx, "apply", "--check", "--cached", "--whitespace=nowarn", ".git/rebase-apply/patch").Env(env).Run() == nil
}

// stopped is the conflict or other operation that keeps a tree from being read, if any.
func (r repo) stopped(st *state) error {
	if !r.inProgress() {
		return nil
	}
	if st.Conflict != nil {
		return st.Conflict
	}
	if _, err := os.Stat(r.gitPath("rebase-merge")); err == nil {
		return fmt.Errorf("a git rebase is in progress in %s: finish it (`git -C %s rebase --continue`) or drop it (--abort)", r.dir, run.Quote(r.dir))
	}
	return fmt.Errorf("a git am or rebase is in progress in %s: `git -C %s status` says how to finish it", r.dir, run.Quote(r.dir))
}
