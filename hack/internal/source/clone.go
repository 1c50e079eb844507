package source

import (
	"context"
	"io"
	"os"

	"podenv.dev/hack/internal/run"
)

// treeConfig is the configuration of a tree's repository. Nothing may run in its
// background, and 20,000 files want git's quicker index.
var treeConfig = [][2]string{
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"core.fsmonitor", "false"},
	{"core.autocrlf", "false"},
	{"core.untrackedCache", "true"},
	{"core.compression", "1"},
	{"feature.manyFiles", "true"},
	{"index.version", "4"},
}

// outside runs a git command that makes a repository. Were GIT_DIR set, git would take the
// new work tree's place for fixed, and it is about to be renamed.
func outside(ctx context.Context, log io.Writer, args ...string) error {
	args = append([]string{"-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE", "git"}, args...)
	return run.Command(ctx, "env", args...).Env(hermetic...).Log(log).Run()
}

// cloneOf makes r a repository with the release checked out, and returns its commit.
// The pack is shared by hard link where the file system allows it, which is safe as git
// never writes to one: each tree stands on its own and the cache may be deleted. With
// --local git would not fall back to a copy.
func (r repo) cloneOf(ctx context.Context, release repo) (string, error) {
	if err := outside(ctx, r.log, "clone", "--quiet", "--no-checkout", "--template=", release.dir, r.dir); err != nil {
		return "", err
	}
	for _, c := range treeConfig {
		if err := r.git(ctx, "config", c[0], c[1]); err != nil {
			return "", err
		}
	}
	// A release is checked out byte for byte, whatever its .gitattributes say.
	if err := os.MkdirAll(r.gitPath("info"), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(r.gitPath("info", "attributes"), []byte("* -text\n"), 0o644); err != nil {
		return "", err
	}
	commit, err := r.head(ctx)
	if err != nil {
		return "", err
	}
	if err := r.git(ctx, "remote", "remove", "origin"); err != nil {
		return "", err
	}
	return commit, r.moveTo(ctx, commit)
}

// moveTo checks out commit on the tree's branch, drops what differs from it and ends a
// `git am` in progress. Whoever calls it has made sure that nothing of a person's is lost.
func (r repo) moveTo(ctx context.Context, commit string) error {
	for _, operation := range []string{"rebase-apply", "rebase-merge"} {
		if err := os.RemoveAll(r.gitPath(operation)); err != nil {
			return err
		}
	}
	if err := r.git(ctx, "checkout", "--quiet", "--force", "-B", treeBranch, commit); err != nil {
		return err
	}
	return r.git(ctx, "clean", "--quiet", "--force", "-d")
}

// unlock removes the locks of git commands that were killed. Only a tree that assembly had
// to itself may be unlocked: elsewhere they are of a git that runs.
func (r repo) unlock() error {
	for _, left := range []string{"index.lock", "HEAD.lock"} {
		if err := os.Remove(r.gitPath(left)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
