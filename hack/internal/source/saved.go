package source

import (
	"context"
	"os"
	"strings"
	"time"
)

// discard makes way for assembly, whatever the tree holds.
func (a *assembly) discard(ctx context.Context, dirty []string) error {
	if a.state.Busy {
		if err := a.tree.unlock(); err != nil {
			return err
		}
	}
	if len(dirty) > 0 {
		if err := a.saveFiles(ctx); err != nil {
			return err
		}
	} else if err := a.keepForeign(ctx); err != nil {
		return err
	}
	return a.tree.moveTo(ctx, a.state.last())
}

// recover makes way for assembly after one that was interrupted. Commits by someone else
// since are not its to drop. Changed files may be a half-applied patch or a person's; they
// are kept aside.
func (a *assembly) recover(ctx context.Context, head string, dirty []string) error {
	others, err := a.tree.lines(ctx, append([]string{"log", "--format=%ce%x09%h %s", head, "--not"}, a.state.commits()...)...)
	if err != nil {
		return err
	}
	var commits []string
	for _, line := range others {
		if committer, commit, _ := strings.Cut(line, "\t"); committer != authorEmail {
			commits = append(commits, commit)
		}
	}
	if len(commits) > 0 {
		return a.unwritten(commits)
	}
	if err := a.tree.unlock(); err != nil {
		return err
	}
	if len(dirty) > 0 {
		if err := a.saveFiles(ctx); err != nil {
			return err
		}
	}
	return a.tree.moveTo(ctx, a.state.last())
}

// keepForeign keeps the commit that is checked out under a ref, if assembly did not make it.
func (a *assembly) keepForeign(ctx context.Context) error {
	head, err := a.tree.head(ctx)
	if err != nil || a.state.made(head) {
		return err
	}
	if head == a.state.Written {
		return a.tree.git(ctx, "update-ref", writtenRef, head)
	}
	return a.keep(ctx, head)
}

// saveFiles commits the files as they are, untracked ones included, under a ref.
func (a *assembly) saveFiles(ctx context.Context) error {
	index := "GIT_INDEX_FILE=" + a.tree.gitPath("podenv", "saved.index")
	defer os.Remove(a.tree.gitPath("podenv", "saved.index"))
	for _, args := range [][]string{{"read-tree", "HEAD"}, {"add", "--all"}} {
		if err := a.tree.cmd(ctx, args...).Env(index).Run(); err != nil {
			return err
		}
	}
	tree, err := a.tree.cmd(ctx, "write-tree").Env(index).Output()
	if err != nil {
		return err
	}
	commit, err := a.tree.quiet(ctx, "commit-tree", "-p", "HEAD", "-m", "Files as they were when podenv dropped them", tree)
	if err != nil {
		return err
	}
	return a.keep(ctx, commit)
}

// keep gives commit a ref, so that git never deletes it.
func (a *assembly) keep(ctx context.Context, commit string) error {
	ref := savedRefs + time.Now().UTC().Format("20060102-150405") + "-" + commit[:12]
	a.step.Now("keeping what the tree held as %s", ref)
	return a.tree.git(ctx, "update-ref", ref, commit)
}
