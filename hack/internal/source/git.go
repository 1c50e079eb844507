package source

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/run"
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
