package source

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podenv.dev/hack/internal/run"
)

// Who made the commits that are not a patch's.
const (
	authorName  = "podenv authors"
	authorEmail = "podenv@podenv.dev"
)

// repo is a git repository. Its commands see no configuration but the repository's own,
// so that the same inputs give the same commits and patches for everyone.
type repo struct {
	dir  string
	bare bool
	log  io.Writer
}

// hermetic is the configuration of every git command. A tree may belong to another user
// than the one who runs podenv (sudo, a bind mount): that is what safe.directory is for.
var hermetic = []string{
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
	"GIT_CONFIG_COUNT=3",
	"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=/dev/null",
	"GIT_CONFIG_KEY_2=core.excludesFile", "GIT_CONFIG_VALUE_2=/dev/null",
	"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "LC_ALL=C", "TZ=UTC",
	"GIT_COMMITTER_NAME=" + authorName, "GIT_COMMITTER_EMAIL=" + authorEmail,
	"GIT_AUTHOR_NAME=" + authorName, "GIT_AUTHOR_EMAIL=" + authorEmail,
}

// cmd prepares a git command. The repository is named in full, because podenv may run
// in a hook of another one, whose GIT_DIR is in the environment.
func (r repo) cmd(ctx context.Context, args ...string) *run.Cmd {
	c := run.Command(ctx, "git", args...).Dir(r.dir).Env(hermetic...)
	if r.bare {
		c.Env("GIT_DIR=" + r.dir)
	} else {
		c.Env("GIT_DIR="+r.gitPath(), "GIT_WORK_TREE="+r.dir, "GIT_INDEX_FILE="+r.gitPath("index"))
	}
	if r.log != nil {
		c.Log(r.log)
	}
	return c
}

// git runs a git command.
func (r repo) git(ctx context.Context, args ...string) error { return r.cmd(ctx, args...).Run() }

// quiet returns what a git command prints, and keeps it out of the log.
func (r repo) quiet(ctx context.Context, args ...string) (string, error) {
	r.log = nil
	return r.cmd(ctx, args...).Output()
}

// lines is quiet's output, split.
func (r repo) lines(ctx context.Context, args ...string) ([]string, error) {
	out, err := r.quiet(ctx, args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, "\n"), nil
}

// fields is quiet's output of a command that ends its items with NUL (-z).
func (r repo) fields(ctx context.Context, args ...string) ([]string, error) {
	out, err := r.quiet(ctx, args...)
	out = strings.TrimSuffix(out, "\x00")
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, "\x00"), nil
}

// gitPath is a path inside the repository's own folder.
func (r repo) gitPath(elem ...string) string {
	if r.bare {
		return filepath.Join(append([]string{r.dir}, elem...)...)
	}
	return filepath.Join(append([]string{r.dir, ".git"}, elem...)...)
}

// head is the commit that is checked out.
func (r repo) head(ctx context.Context) (string, error) {
	return r.quiet(ctx, "rev-parse", "--verify", "HEAD^{commit}")
}

// dirty lists the paths that differ from HEAD, untracked ones included.
func (r repo) dirty(ctx context.Context) ([]string, error) {
	entries, err := r.fields(ctx, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
	paths := make([]string, 0, len(entries))
	for _, e := range entries {
		paths = append(paths, e[3:]) // two letters of state and a space
	}
	return paths, err
}

// stage adds paths to the index as they are in the tree, whatever it ignores. A path that is
// neither in the tree nor in the index is an error.
func (r repo) stage(ctx context.Context, paths []string) error {
	return r.cmd(ctx, "add", "--all", "--force", "--pathspec-from-file=-", "--pathspec-file-nul").Stdin(pathspecs(paths)).Run()
}

// commit records the index with a fixed date, so that its id depends on its content alone.
func (r repo) commit(ctx context.Context, message string, date time.Time) (string, error) {
	stamp := fmt.Sprintf("%d +0000", date.Unix())
	err := r.cmd(ctx, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--file=-").
		Stdin(strings.NewReader(message)).
		Env("GIT_AUTHOR_DATE="+stamp, "GIT_COMMITTER_DATE="+stamp).Run()
	if err != nil {
		return "", err
	}
	return r.head(ctx)
}

// commitDate is the author date of a commit.
func (r repo) commitDate(ctx context.Context, commit string) (time.Time, error) {
	out, err := r.quiet(ctx, "log", "-1", "--format=%aI", commit)
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, out)
}

// pathspecs writes paths as git reads them from --pathspec-from-file=- --pathspec-file-nul.
func pathspecs(paths []string) io.Reader {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(":(top,literal)" + p + "\x00")
	}
	return strings.NewReader(b.String())
}

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
// `git am` in progress. The caller has made sure that no edit is lost.
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
