package source

import (
	"context"
	"io"
	"os"
	"strings"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/run"
)

// repo is the git repository of a tree, of a release or of a rebase.
type repo struct{ gitrepo.Repo }

// head is the commit that is checked out.
func (r repo) head(ctx context.Context) (string, error) {
	return r.Quiet(ctx, "rev-parse", "--verify", "HEAD^{commit}")
}

// dirty lists the paths that differ from HEAD, untracked ones included.
func (r repo) dirty(ctx context.Context) ([]string, error) {
	entries, err := r.Fields(ctx, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
	paths := make([]string, 0, len(entries))
	for _, e := range entries {
		paths = append(paths, e[3:]) // two letters of state and a space
	}
	return paths, err
}

// stage adds paths to the index as they are in the tree, whatever it ignores. A path that is
// neither in the tree nor in the index is an error.
func (r repo) stage(ctx context.Context, paths []string) error {
	const literal = ":(top,literal)"
	specs := literal + strings.Join(paths, "\x00"+literal)
	return r.Cmd(ctx, "add", "--all", "--force", "--pathspec-from-file=-", "--pathspec-file-nul").Stdin(strings.NewReader(specs)).Run()
}

// commit records the index with the author date of another commit, so that its id depends on its
// content alone.
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

// treeConfig gives git clone the configuration of a tree's repository. Nothing may run in its
// background, and 20,000 files want git's quicker index.
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

// runOutsideRepo runs a git command that makes a repository. Were GIT_DIR set, git would take the
// new work tree's place for fixed, and it is about to be renamed.
func runOutsideRepo(ctx context.Context, log io.Writer, args ...string) error {
	args = append([]string{"-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE", "git"}, args...)
	return run.Command(ctx, "env", args...).Env(gitrepo.Hermetic...).Log(log).Run()
}

// cloneRelease makes r a repository with the release checked out, and returns its commit.
// The pack is shared by hard link where the file system allows it, which is safe as git
// never writes to one: each tree stands on its own and the cache may be deleted. With
// --local git would not fall back to a copy.
func (r repo) cloneRelease(ctx context.Context, release repo) (string, error) {
	args := append([]string{"clone", "--quiet", "--no-checkout", "--template="}, treeConfig...)
	if err := runOutsideRepo(ctx, r.Log, append(args, release.Dir, r.Dir)...); err != nil {
		return "", err
	}
	// A release is checked out byte for byte, whatever its .gitattributes say.
	if err := os.MkdirAll(r.Path("info"), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(r.Path("info", "attributes"), []byte("* -text\n"), 0o644); err != nil {
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

// moveTo checks out commit on the tree's branch, drops what differs from it and ends a
// `git am` in progress. The caller has made sure that no edit is lost.
func (r repo) moveTo(ctx context.Context, commit string) error {
	for _, operation := range []string{"rebase-apply", "rebase-merge"} {
		if err := os.RemoveAll(r.Path(operation)); err != nil {
			return err
		}
	}
	if err := r.Run(ctx, "checkout", "--quiet", "--force", "-B", treeBranch, commit); err != nil {
		return err
	}
	return r.Run(ctx, "clean", "--quiet", "--force", "-d")
}

// unlock removes the locks of git commands that were killed. Only a tree that assembly had
// to itself may be unlocked: elsewhere they are of a git that runs.
func (r repo) unlock() error {
	for _, left := range []string{"index.lock", "HEAD.lock"} {
		if err := os.Remove(r.Path(left)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
