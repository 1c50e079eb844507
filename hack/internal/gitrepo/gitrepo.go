// Package gitrepo runs git commands on the repositories of trees. They use only the
// repository's own configuration, so that the same inputs give the same commits and patches
// for every user.
package gitrepo

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/run"
)

// The committer of the commits that podenv makes, and the author of those that are not patches.
const (
	AuthorName  = "podenv authors"
	AuthorEmail = "podenv@podenv.dev"
)

// Hermetic is the environment of every git command. It sets safe.directory because a tree
// may belong to another user than the one who runs podenv (sudo, a bind mount).
var Hermetic = []string{
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
	"GIT_CONFIG_COUNT=3",
	"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=/dev/null",
	"GIT_CONFIG_KEY_2=core.excludesFile", "GIT_CONFIG_VALUE_2=/dev/null",
	"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "LC_ALL=C", "TZ=UTC",
	"GIT_COMMITTER_NAME=" + AuthorName, "GIT_COMMITTER_EMAIL=" + AuthorEmail,
	"GIT_AUTHOR_NAME=" + AuthorName, "GIT_AUTHOR_EMAIL=" + AuthorEmail,
}

// Repo is a git repository.
type Repo struct {
	Dir  string // absolute
	Bare bool
	Log  io.Writer // receives the output of commands; may be nil
}

// Cmd prepares a git command. It sets all of git's variables for the repository, because
// podenv may run in a hook of another one, whose GIT_DIR is in the environment.
func (r Repo) Cmd(ctx context.Context, args ...string) *run.Cmd {
	c := run.Command(ctx, "git", args...).Dir(r.Dir).Log(r.Log).Env(Hermetic...).Env("GIT_DIR=" + r.Path())
	if !r.Bare {
		c.Env("GIT_WORK_TREE="+r.Dir, "GIT_INDEX_FILE="+r.Path("index"))
	}
	return c
}

// Run runs a git command.
func (r Repo) Run(ctx context.Context, args ...string) error { return r.Cmd(ctx, args...).Run() }

// Quiet returns the output of a git command, and does not log it.
func (r Repo) Quiet(ctx context.Context, args ...string) (string, error) {
	r.Log = nil
	return r.Cmd(ctx, args...).Output()
}

// Lines is Quiet, split into lines.
func (r Repo) Lines(ctx context.Context, args ...string) ([]string, error) {
	return r.list(ctx, "\n", args)
}

// Fields is Quiet, split at NUL: for commands with -z.
func (r Repo) Fields(ctx context.Context, args ...string) ([]string, error) {
	return r.list(ctx, "\x00", args)
}

func (r Repo) list(ctx context.Context, end string, args []string) ([]string, error) {
	out, err := r.Quiet(ctx, args...)
	out = strings.TrimSuffix(out, end)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, end), nil
}

// Path is a path inside the git directory.
func (r Repo) Path(elem ...string) string {
	dir := r.Dir
	if !r.Bare {
		dir = filepath.Join(dir, ".git")
	}
	return filepath.Join(dir, filepath.Join(elem...))
}

// ChangedIn lists the files that commit changes, sorted.
func (r Repo) ChangedIn(ctx context.Context, commit string) ([]string, error) {
	return r.Fields(ctx, "diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--no-renames", commit)
}

// Changed lists the files that differ from the commit since, sorted: changes that are not
// committed and deleted files count too.
func (r Repo) Changed(ctx context.Context, since string) ([]string, error) {
	tracked, errTracked := r.Fields(ctx, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", since, "--")
	added, errAdded := r.Fields(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err := errors.Join(errTracked, errAdded); err != nil {
		return nil, err
	}
	files := append(tracked, added...)
	slices.Sort(files)
	return slices.Compact(files), nil
}
