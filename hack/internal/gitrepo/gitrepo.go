// Package gitrepo runs git commands on the repositories of trees. They see no configuration
// but the repository's own, so that the same inputs give the same commits and patches for
// everyone.
package gitrepo

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/run"
)

// Who made the commits that are not a patch's.
const (
	AuthorName  = "podenv authors"
	AuthorEmail = "podenv@podenv.dev"
)

// Hermetic is the configuration of every git command. A tree may belong to another user
// than the one who runs podenv (sudo, a bind mount): that is what safe.directory is for.
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
	Log  io.Writer // gets what commands print; may be nil
}

// Cmd prepares a git command. The repository is named in full, because podenv may run
// in a hook of another one, whose GIT_DIR is in the environment.
func (r Repo) Cmd(ctx context.Context, args ...string) *run.Cmd {
	c := run.Command(ctx, "git", args...).Dir(r.Dir).Env(Hermetic...)
	if r.Bare {
		c.Env("GIT_DIR=" + r.Dir)
	} else {
		c.Env("GIT_DIR="+r.Path(), "GIT_WORK_TREE="+r.Dir, "GIT_INDEX_FILE="+r.Path("index"))
	}
	if r.Log != nil {
		c.Log(r.Log)
	}
	return c
}

// Run runs a git command.
func (r Repo) Run(ctx context.Context, args ...string) error { return r.Cmd(ctx, args...).Run() }

// Quiet returns what a git command prints, and keeps it out of the log.
func (r Repo) Quiet(ctx context.Context, args ...string) (string, error) {
	r.Log = nil
	return r.Cmd(ctx, args...).Output()
}

// Lines is Quiet's output, split.
func (r Repo) Lines(ctx context.Context, args ...string) ([]string, error) {
	out, err := r.Quiet(ctx, args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, "\n"), nil
}

// Fields is Quiet's output of a command that ends its items with NUL (-z).
func (r Repo) Fields(ctx context.Context, args ...string) ([]string, error) {
	out, err := r.Quiet(ctx, args...)
	out = strings.TrimSuffix(out, "\x00")
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, "\x00"), nil
}

// Path is a path inside the repository's own folder.
func (r Repo) Path(elem ...string) string {
	if r.Bare {
		return filepath.Join(append([]string{r.Dir}, elem...)...)
	}
	return filepath.Join(append([]string{r.Dir, ".git"}, elem...)...)
}

// Changed lists the files that differ from those of the commit since, committed or not and
// deleted ones included, sorted.
func (r Repo) Changed(ctx context.Context, since string) ([]string, error) {
	tracked, err := r.Fields(ctx, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", since, "--")
	if err != nil {
		return nil, err
	}
	added, err := r.Fields(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	files := append(tracked, added...)
	slices.Sort(files)
	return slices.Compact(files), nil
}
