// Package source puts a series' tree together: the pinned release from the Go module
// cache, then our new files, the patches and the generators' output, laid out as
// kubernetes/kubernetes is.
//
// The tree is a git repository with one commit for each of these, so that the user
// edits it with git and WritePatches takes the edits back. What the user has done
// there is never overwritten.
package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// Tree is the assembled source of one series.
type Tree struct {
	// Dir is the tree's absolute path.
	Dir string
	// Series is what the tree was made from.
	Series series.Series
	// Stock is set for a release without new files and patches.
	Stock bool
	// Key is a hash of all that went into the tree when it was assembled. It says
	// nothing about edits since.
	Key string
}

// Name is the name of the tree in a layout: "v1.33" or "v1.33-stock".
func (t *Tree) Name() string { return treeName(t.Series, t.Stock) }

func treeName(s series.Series, stock bool) string {
	if stock {
		return s.Name + "-stock"
	}
	return s.Name
}

// Release returns the commit of the release that the tree stands on, and its date.
func (t *Tree) Release(ctx context.Context) (commit string, date time.Time, err error) {
	out, err := gitrepo.Repo{Dir: t.Dir}.Quiet(ctx, "log", "--max-parents=0", "--format=%H %cI", "HEAD")
	if err != nil {
		return "", time.Time{}, fmt.Errorf("finding the commit of the release in %s: %w; run %s", t.Dir, err, treeCommand(t.Series, t.Stock))
	}
	commit, stamp, _ := strings.Cut(out, " ")
	if date, err = time.Parse(time.RFC3339, stamp); err != nil {
		return "", time.Time{}, fmt.Errorf("the tree %s must have one first commit, git log prints %q: make the history linear with git rebase", t.Dir, out)
	}
	return commit, date.UTC(), nil
}

// Changed lists the files in which the tree differs from its release, sorted, as paths from
// its root. Files that are not committed count too, deleted ones included.
func (t *Tree) Changed(ctx context.Context) ([]string, error) {
	release, _, err := t.Release(ctx)
	if err != nil {
		return nil, err
	}
	return gitrepo.Repo{Dir: t.Dir}.Changed(ctx, release)
}

// Contents lists git's hashes of the contents that the tree has without edits: the one that
// assembly made, and the one that WritePatches wrote to the patches.
func (t *Tree) Contents(ctx context.Context) ([]string, error) {
	st, err := readState(t.Dir)
	if err != nil {
		return nil, err
	}
	args := []string{"rev-parse", st.last() + "^{tree}"}
	if st.Written != "" {
		args = append(args, st.Written+"^{tree}")
	}
	return gitrepo.Repo{Dir: t.Dir}.Lines(ctx, args...)
}

// ChangedIn lists the files that a commit of the tree changes, sorted.
func (t *Tree) ChangedIn(ctx context.Context, commit string) ([]string, error) {
	return gitrepo.Repo{Dir: t.Dir}.ChangedIn(ctx, commit)
}

// Packages lists the import paths of the packages of the tree whose tests are about files, sorted.
// Files that no Go test is about have none.
func (t *Tree) Packages(files []string) []string {
	var paths []string
	for _, file := range files {
		switch {
		case strings.HasPrefix(file, "staging/src/k8s.io/api/testdata/"):
			paths = append(paths, "k8s.io/api") // its round-trip tests read them
		case strings.HasSuffix(file, ".go") && !strings.Contains(file, "/testdata/"):
			paths = append(paths, t.Series.ImportPath(path.Dir(file)))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Options are choices of Assemble.
type Options struct {
	// Stock leaves out the new files, the patches and the generators.
	Stock bool
	// KeepEdits returns a tree with edits as it is where its inputs have not changed,
	// instead of ErrEdited.
	KeepEdits bool
	// Discard drops edits of the tree. They stay in the tree's repository,
	// under refs/podenv/saved.
	Discard bool
}

// ErrNoTree is returned where there is no assembled tree yet.
var ErrNoTree = errors.New("no assembled tree")

// Assemble makes the tree of s, or brings it up to date: only what follows the first
// input that changed is done again. An unchanged tree costs a hash of the inputs and
// a git status.
//
// A tree that the user has edited is left alone, with ErrEdited unless Options.KeepEdits says
// otherwise. A patch that does not
// apply is a *ConflictError, and the tree is left where `git am` stopped. After any
// other error, and after a crash, the next call goes on from a consistent state.
func Assemble(ctx context.Context, l layout.Layout, s series.Series, o Options, step *progress.Step) (*Tree, error) {
	return newAssembly(l, s, o, step).run(ctx)
}

// Open returns the tree as it is on the disk, edits included. It waits for another podenv
// that changes the tree, with a line of r that says so. Without a tree, or with one that is
// not finished, the error is ErrNoTree.
func Open(ctx context.Context, l layout.Layout, s series.Series, stock bool, r *progress.Reporter) (*Tree, error) {
	a := newAssembly(l, s, Options{Stock: stock}, nil)
	unlock, err := a.lockWithStep(ctx, r)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := a.readTree(); err != nil {
		return nil, err
	}
	if err := a.tree.stopped(a.state); err != nil {
		return nil, err
	}
	if a.state.Key == "" {
		return nil, a.noTree(", only a half of one")
	}
	return a.result(), nil
}

// readTree reads the state of a tree that must be there.
func (a *assembly) readTree() (err error) {
	if a.state, err = readState(a.tree.Dir); errors.Is(err, os.ErrNotExist) {
		return a.noTree("")
	}
	return err
}

func (a *assembly) noTree(half string) error {
	return fmt.Errorf("%w of %s%s: run %s", ErrNoTree, treeName(a.series, a.options.Stock), half, treeCommand(a.series, a.options.Stock))
}

// treeCommand is what the user types to get the tree.
func treeCommand(s series.Series, stock bool) string {
	line := "`podenv tree --series " + s.Name
	if stock {
		line += " --stock"
	}
	return line + "`"
}

// CheckUnedited returns an error, with ErrEdited in its chain where the tree has edits, if
// the tree of s must not be deleted. A series that patches/ no longer has needs only a name.
func CheckUnedited(ctx context.Context, l layout.Layout, s series.Series, stock bool) error {
	_, err := newAssembly(l, s, Options{Stock: stock}, nil).find(ctx)
	return err
}

// Status is what a tree holds.
type Status struct {
	// Dir is the tree.
	Dir string
	// Release is the subject of the commit that the tree stands on.
	Release string
	// Patched and Generated are git's hashes of the tree's files after the last patch, and with
	// generated code: the same files give the same hash.
	Patched, Generated string
	// UpToDate is set where the tree is what the inputs give, edits aside.
	UpToDate bool
	// Commits are the commits on top of the release, oldest first.
	Commits []Commit
	// Dirty are the paths that are not committed.
	Dirty []string
	// Stopped says what waits to be continued, a conflict for example; nil if nothing does.
	Stopped error
	// Saved are the refs under which dropped edits are kept.
	Saved []string
}

// Commit is one commit of a tree.
type Commit struct {
	ID      string
	Subject string
	// Kind is "new-files", "patch" or "generated".
	Kind string
	// InSeries is set for a commit that assembly made; the others are the user's.
	InSeries bool
}

// Describe says what the tree of s holds, without changing it.
func Describe(ctx context.Context, l layout.Layout, s series.Series, stock bool) (*Status, error) {
	return newAssembly(l, s, Options{Stock: stock}, nil).describe(ctx)
}

func (a *assembly) describe(ctx context.Context) (*Status, error) {
	if err := a.readTree(); err != nil {
		return nil, err
	}
	in, err := readInputs(a.layout, a.series, a.options.Stock)
	if err != nil {
		return nil, err
	}
	status := &Status{Dir: a.tree.Dir, UpToDate: a.state.Key == in.key(), Stopped: a.tree.stopped(a.state)}
	if status.Dirty, err = a.tree.dirty(ctx); err != nil {
		return nil, err
	}
	if status.Saved, err = a.tree.Lines(ctx, "for-each-ref", "--format=%(refname)", savedRefs); err != nil {
		return nil, err
	}
	if status.Patched, status.Generated, err = a.tree.treeHashes(ctx, a.state); err != nil {
		return nil, err
	}
	history, err := a.tree.history(ctx)
	if err != nil {
		return nil, err
	}
	for i, c := range history {
		subject, _, _ := strings.Cut(c.message, "\n")
		if i == 0 {
			status.Release = subject
			continue
		}
		status.Commits = append(status.Commits, Commit{ID: c.id, Subject: subject, Kind: string(c.kind), InSeries: a.state.made(c.id)})
	}
	return status, nil
}

// treeHashes are those of the commits that assembly made last.
func (r repo) treeHashes(ctx context.Context, st *state) (patched, generated string, err error) {
	last := len(st.Steps) - 1
	if generated, err = r.Quiet(ctx, "rev-parse", st.Steps[last].Commit+"^{tree}"); err != nil {
		return "", "", err
	}
	if st.Steps[last].Kind != kindGenerated {
		return generated, generated, nil
	}
	patched, err = r.Quiet(ctx, "rev-parse", st.Steps[last-1].Commit+"^{tree}")
	return patched, generated, err
}
