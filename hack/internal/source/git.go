package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// repo is the git repository of a tree, of a release or of a rebase.
type repo struct{ gitrepo.Repo }

// status lists the paths that differ from HEAD, including untracked ones, each after the two
// letters of its status and a space.
func (r repo) status(ctx context.Context) ([]string, error) {
	return r.Fields(ctx, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
}

// head returns the id of the commit that is checked out.
func (r repo) head(ctx context.Context) (string, error) {
	return r.Quiet(ctx, "rev-parse", "--verify", "HEAD^{commit}")
}

// dirty is status without the letters.
func (r repo) dirty(ctx context.Context) ([]string, error) {
	paths, err := r.status(ctx)
	for i, entry := range paths {
		paths[i] = entry[3:]
	}
	return paths, err
}

// commit commits the index with the author date of the commit dated, so that the id of the new
// commit depends only on its content.
func (r repo) commit(ctx context.Context, message, dated string) (string, error) {
	date, err := r.Quiet(ctx, "log", "-1", "--format=%at +0000", dated)
	if err != nil {
		return "", err
	}
	err = r.Cmd(ctx, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--file=-").
		Stdin(strings.NewReader(message)).
		Env("GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date).Run()
	if err != nil {
		return "", err
	}
	return r.head(ctx)
}

// treeConfig is the configuration of a tree's repository, as flags of git clone. No git process
// may run in the background, and 20,000 files need the settings for large repositories.
var treeConfig = []string{
	"--config=gc.auto=0",
	"--config=maintenance.auto=false",
	"--config=core.fsmonitor=false",
	"--config=core.autocrlf=false",
	"--config=core.untrackedCache=true",
	"--config=core.compression=1",
	"--config=feature.manyFiles=true",
	"--config=index.version=4",
}

// runOutsideRepo runs a git command that creates a repository. With GIT_DIR set, git would treat
// the path of the new work tree as fixed, but the work tree is renamed later.
func runOutsideRepo(ctx context.Context, log io.Writer, args ...string) error {
	args = append([]string{"-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE", "git"}, args...)
	return run.Command(ctx, "env", args...).Env(gitrepo.Hermetic...).Log(log).Run()
}

// cloneRelease creates r with the release checked out, and returns its commit. git hard-links
// the pack if the file system allows it, and never writes to it, so the cache can be deleted
// without breaking a tree. With --local git would not fall back to a copy.
func (r repo) cloneRelease(ctx context.Context, release repo) (string, error) {
	args := append([]string{"clone", "--quiet", "--no-checkout", "--template="}, treeConfig...)
	if err := runOutsideRepo(ctx, r.Log, append(args, release.Dir, r.Dir)...); err != nil {
		return "", err
	}
	// Check out the release byte for byte, regardless of its .gitattributes.
	if err := errors.Join(os.MkdirAll(r.Path("info"), 0o755), os.WriteFile(r.Path("info", "attributes"), []byte("* -text\n"), 0o644)); err != nil {
		return "", err
	}
	commit, err := r.head(ctx)
	if err != nil {
		return "", err
	}
	if err := r.Run(ctx, "remote", "remove", "origin"); err != nil {
		return "", err
	}
	return commit, r.moveTo(ctx, commit)
}

// moveTo resets the tree's branch and files to commit, and ends a `git am` or `git rebase` in
// progress. The caller has made sure that no edit is lost.
func (r repo) moveTo(ctx context.Context, commit string) error {
	if err := errors.Join(os.RemoveAll(r.Path("rebase-apply")), os.RemoveAll(r.Path("rebase-merge"))); err != nil {
		return err
	}
	if err := r.Run(ctx, "checkout", "--quiet", "--force", "-B", treeBranch, commit); err != nil {
		return err
	}
	return r.Run(ctx, "clean", "--quiet", "--force", "-d")
}

// unlock removes the lock files of killed git commands. Call it only if an assembly was the last
// to change the tree: otherwise a git command of the user may hold them.
func (r repo) unlock() error {
	return errors.Join(os.RemoveAll(r.Path("index.lock")), os.RemoveAll(r.Path("HEAD.lock")))
}

// treeCommit is one commit of a tree's history.
type treeCommit struct {
	id      string
	parents []string
	message string
	kind    kind
	paths   []string // that it changes
}

func (c treeCommit) subject() string {
	subject, _, _ := strings.Cut(c.message, "\n")
	return subject
}

// title describes the commit in errors.
func (c treeCommit) title() string { return c.id[:12] + " (" + c.subject() + ")" }

// history lists the commits from the release to HEAD, oldest first.
func (r repo) history(ctx context.Context) ([]treeCommit, error) {
	entries, err := r.Fields(ctx, "log", "--reverse", "--topo-order", "-z", "--format=%H%n%P%n%B", "HEAD")
	if err != nil {
		return nil, err
	}
	var commits []treeCommit
	for _, entry := range entries {
		id, entry, _ := strings.Cut(entry, "\n")
		parents, text, _ := strings.Cut(entry, "\n")
		c := treeCommit{id: id, parents: strings.Fields(parents), message: text, kind: kindOf(text)}
		if c.kind == kindRelease {
			commits = nil // the user has rebased onto another release
		} else if c.paths, err = r.ChangedIn(ctx, id); err != nil {
			return nil, err
		}
		commits = append(commits, c)
	}
	if len(commits) == 0 || commits[0].kind != kindRelease {
		return nil, fmt.Errorf("HEAD of %s is not based on the commit of a release: check out the branch %s", r.Dir, treeBranch)
	}
	return commits, nil
}

// check refuses a history that cannot be written as patches.
func (a *assembly) check(commits []treeCommit) error {
	if id := commits[0].id; !slices.Contains(a.state.knownCommits(), id) {
		return fmt.Errorf("the release's commit %s is not the one that podenv made: make the change a commit of its own on top of %s", commits[0].title(), a.state.Steps[0].Commit[:12])
	}
	for _, c := range commits[1:] {
		if err := a.checkCommit(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembly) checkCommit(c treeCommit) error {
	dir := run.Quote(a.tree.Dir)
	if len(c.parents) > 1 {
		return fmt.Errorf("commit %s is a merge, which no patch can hold: make the history linear with `git -C %s rebase`", c.title(), dir)
	}
	if c.kind != kindPatch {
		// WritePatches skips this commit, so it must not contain what belongs in a patch.
		for _, p := range c.paths {
			if !a.gen.isGenerated(p) {
				return fmt.Errorf("commit %s is podenv's own, but also changes %s: take that out (`git -C %s reset --soft HEAD^` if it is the last) and commit it by itself", c.title(), p, dir)
			}
		}
		return nil
	}
	if toSquash.MatchString(c.message) {
		return fmt.Errorf("commit %s is not squashed yet: `git -C %s rebase --interactive --autosquash --root`", c.title(), dir)
	}
	if series.HasTrailer(c.message) {
		return fmt.Errorf("the message of commit %s names a new file as only a patch file does, for podenv writes that line: delete it", c.title())
	}
	return c.checkMessage()
}

var (
	toSquash = regexp.MustCompile(`^(fixup|squash|amend)!`)
	cutLine  = regexp.MustCompile(`(?m)^(---|diff -|Index: ).*`)
	header   = regexp.MustCompile(`^(From:|Date:|Subject:|>From).*`)
)

// checkMessage refuses a message that `git am` would change.
func (c treeCommit) checkMessage() error {
	if line := cutLine.FindString(c.message); line != "" {
		return fmt.Errorf("the message of commit %s has the line %q, where git am would cut it off: reword it", c.title(), strings.TrimSpace(line))
	}
	_, body, _ := strings.Cut(c.message, "\n")
	if line := header.FindString(strings.TrimLeft(body, "\n")); line != "" {
		return fmt.Errorf("the body of commit %s starts with %q, which git am would take for a header of the mail: reword it", c.title(), line)
	}
	return nil
}
