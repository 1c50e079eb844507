package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// ErrEdited is returned if an operation would overwrite the user's edits of a tree.
var ErrEdited = errors.New("the tree has edits")

// savedRefs is the prefix of the refs that keep dropped edits.
const savedRefs = "refs/podenv/saved/"

// find reports whether the tree exists. If so its content may be replaced: edits are an error,
// unless Options.Discard drops them.
func (a *assembly) find(ctx context.Context) (bool, error) {
	st, err := readState(a.tree.Dir)
	if errors.Is(err, os.ErrNotExist) {
		if entries, _ := os.ReadDir(a.tree.Dir); len(entries) > 0 {
			return false, fmt.Errorf("%s is not a tree that podenv made, or its .git is gone: move it away", a.tree.Dir)
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a.state = st
	dirty, err := a.tree.dirty(ctx)
	if err != nil {
		return false, fmt.Errorf("looking for edits: %w; if %s is damaged, save what you need and delete it", err, a.tree.Dir)
	}
	head, err := a.tree.head(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case a.options.Discard:
		return true, a.discard(ctx, dirty)
	case st.Busy:
		return true, a.recover(ctx, head, dirty)
	case a.tree.inProgress() && st.Conflict != nil:
		if len(dirty) == 0 && head == st.last() && st.Conflict.Key != a.key {
			// There are no edits, and the inputs have changed since the conflict.
			return true, a.tree.moveTo(ctx, head)
		}
		return false, st.Conflict
	case a.tree.inProgress():
		return false, a.editedError("a git am or rebase is in progress",
			fmt.Sprintf("finish it (`git -C %s status` says how), then %s", run.Quote(a.tree.Dir), a.writeCommand()))
	case len(dirty) > 0:
		return false, a.editedError("not committed: "+abbreviate(dirty),
			fmt.Sprintf("commit them with `git -C %[1]s add --all && git -C %[1]s commit`, then %[2]s", run.Quote(a.tree.Dir), a.writeCommand()))
	case !st.known(head):
		commits, err := a.tree.Lines(ctx, append([]string{"log", "--format=%h %s", head, "--not"}, st.knownCommits()...)...)
		if err != nil {
			return false, err
		}
		if len(commits) == 0 {
			commits = []string{head}
		}
		return false, a.unwritten(commits)
	}
	return true, nil
}

// inProgress reports whether a `git am` or `git rebase` is in progress.
func (r repo) inProgress() bool {
	_, errAm := os.Stat(r.Path("rebase-apply"))
	_, errRebase := os.Stat(r.Path("rebase-merge"))
	return errAm == nil || errRebase == nil
}

// editedError says what is edited, and how to keep and how to drop the edits.
func (a *assembly) editedError(what, keep string) error {
	if a.options.Stock {
		keep = fmt.Sprintf("a stock tree has no patches: make the change in the tree of the series, `podenv tree --series %s`", a.series.Name)
	}
	drop := strings.Trim(treeCommand(a.series, a.options.Stock), "`") + " --discard"
	return fmt.Errorf("%w that would be lost: %s\n  in %s\n  to keep them: %s\n  to drop them: `%s`", ErrEdited, what, a.tree.Dir, keep, drop)
}

func (a *assembly) unwritten(commits []string) error {
	return a.editedError("commits that are in no patch: "+abbreviate(commits), a.writeCommand())
}

// writeCommand says how to write commits to patches.
func (a *assembly) writeCommand() string {
	return fmt.Sprintf("write the commits to %s with `podenv patches --series %s`", series.Folder(a.series.Name), a.series.Name)
}

// abbreviate lists the first few of items.
func abbreviate(items []string) string {
	const most = 8
	if len(items) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), len(items)-most)
	}
	return strings.Join(items, ", ")
}

// discard saves and drops all edits, so that assembly can replace the content of the tree.
func (a *assembly) discard(ctx context.Context, dirty []string) error {
	if len(dirty) == 0 {
		if err := a.saveForeignHead(ctx); err != nil {
			return err
		}
	}
	return a.dropFiles(ctx, dirty)
}

// recover prepares the tree for assembly after an interrupted one. Commits that someone else made since are an
// error. Changed files may be a half-applied patch or an edit, so they are saved.
func (a *assembly) recover(ctx context.Context, head string, dirty []string) error {
	others, err := a.tree.Lines(ctx, append([]string{"log", "--format=%ce%x09%h %s", head, "--not"}, a.state.knownCommits()...)...)
	if err != nil {
		return err
	}
	var commits []string
	for _, line := range others {
		if committer, commit, _ := strings.Cut(line, "\t"); committer != gitrepo.AuthorEmail {
			commits = append(commits, commit)
		}
	}
	if len(commits) > 0 {
		return a.unwritten(commits)
	}
	return a.dropFiles(ctx, dirty)
}

// dropFiles moves the tree to the last commit that assembly made, and saves the files if some are dirty.
func (a *assembly) dropFiles(ctx context.Context, dirty []string) error {
	if a.state.Busy {
		if err := a.tree.unlock(); err != nil {
			return err
		}
	}
	if len(dirty) > 0 {
		if err := a.saveFiles(ctx); err != nil {
			return err
		}
	}
	return a.tree.moveTo(ctx, a.state.last())
}

// saveForeignHead saves HEAD under a ref, unless its content is stored elsewhere.
func (a *assembly) saveForeignHead(ctx context.Context) error {
	head, err := a.tree.head(ctx)
	if err != nil || a.state.known(head) {
		return err
	}
	return a.saveCommit(ctx, head)
}

// saveFiles saves all files, including untracked ones, as a commit under a ref.
func (a *assembly) saveFiles(ctx context.Context) error {
	if err := a.tree.Run(ctx, "add", "--all"); err != nil {
		return err
	}
	tree, err := a.tree.Quiet(ctx, "write-tree")
	if err != nil {
		return err
	}
	commit, err := a.tree.Quiet(ctx, "commit-tree", "-p", "HEAD", "-m", "Files as they were when podenv dropped them", tree)
	if err != nil {
		return err
	}
	return a.saveCommit(ctx, commit)
}

// saveCommit creates a ref for commit, so that git does not prune it.
func (a *assembly) saveCommit(ctx context.Context, commit string) error {
	ref := savedRefs + time.Now().UTC().Format("20060102-150405") + "-" + commit[:12]
	a.step.Now("keeping what the tree held as %s", ref)
	return a.tree.Run(ctx, "update-ref", ref, commit)
}
