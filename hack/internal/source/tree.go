// Package source assembles the tree of a series: the pinned release from the Go module cache, this module's new
// files, the patches and the generated code, in the layout of kubernetes/kubernetes.
//
// The tree is a git repository with one commit for each of these. The user edits it with git,
// and WritePatches writes the edits to the patches. Assembly never overwrites edits.
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
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// Tree is the assembled source of one series.
type Tree struct {
	Dir    string // absolute
	Series series.Series
	Stock  bool   // a release without new files and patches
	Key    string // hash of all inputs of the tree at the time of assembly, without edits
}

// Name is the name of the tree in a layout: "v1.33" or "v1.33-stock".
func (t *Tree) Name() string { return treeName(t.Series, t.Stock) }

func treeName(s series.Series, stock bool) string {
	if stock {
		return s.Name + "-stock"
	}
	return s.Name
}

// Release returns the commit of the release that the tree is based on, and its date.
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

// Changed lists the files in which the tree differs from its release, sorted and relative to its
// root. Uncommitted changes and deleted files count too.
func (t *Tree) Changed(ctx context.Context) ([]string, error) {
	release, _, err := t.Release(ctx)
	if err != nil {
		return nil, err
	}
	return gitrepo.Repo{Dir: t.Dir}.Changed(ctx, release)
}

// Contents lists the git tree hashes that the tree can have without edits: that of the assembled
// tree, and that of the commit that WritePatches wrote to the patches.
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

// Packages lists the import paths of the packages of the tree that files belong to, sorted. It
// ignores files that no Go test covers.
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

// Options are the options of Assemble.
type Options struct {
	Stock bool // without new files, patches and generated code
	// KeepEdits returns a tree with edits unchanged, instead of ErrEdited, if its inputs have not changed.
	KeepEdits bool
	Discard   bool // drop edits of the tree; its repository keeps them under refs/podenv/saved
}

// ErrNoTree is returned if there is no assembled tree.
var ErrNoTree = errors.New("no assembled tree")

// Assemble creates the tree of s or brings it up to date, starting at the first input that has
// changed. If none has, it only hashes the inputs and runs git status.
//
// A tree with edits is not changed: the error is ErrEdited, unless Options.KeepEdits is set. If a patch does
// not apply, the error is a *ConflictError, and the tree is left where `git am` stopped. After any other error,
// and after a crash, the next call continues from a consistent state.
func Assemble(ctx context.Context, l layout.Layout, s series.Series, o Options, step *progress.Step) (*Tree, error) {
	return newAssembly(l, s, o, step).run(ctx)
}

// Open returns the tree on disk, including edits. While another podenv changes the tree, it waits and shows a
// step of r. If there is no tree, or only an unfinished one, the error is ErrNoTree.
func Open(ctx context.Context, l layout.Layout, s series.Series, stock bool, r *progress.Reporter) (*Tree, error) {
	a := newAssembly(l, s, Options{Stock: stock}, nil)
	unlock, err := lockfile.TryLock(a.lockFile())
	if errors.Is(err, lockfile.ErrHeld) {
		a.step = r.Step("source tree")
		unlock, err = a.lock(ctx)
		err = a.step.End(err)
	}
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
		return nil, a.noTree(", only an unfinished one")
	}
	return a.result(), nil
}

// readTree reads the state of the tree. If there is none, the error is ErrNoTree.
func (a *assembly) readTree() (err error) {
	if a.state, err = readState(a.tree.Dir); errors.Is(err, os.ErrNotExist) {
		return a.noTree("")
	}
	return err
}

func (a *assembly) noTree(detail string) error {
	return fmt.Errorf("%w of %s%s: run %s", ErrNoTree, treeName(a.series, a.options.Stock), detail, treeCommand(a.series, a.options.Stock))
}

// treeCommand is the command that assembles the tree, in backticks.
func treeCommand(s series.Series, stock bool) string {
	line := "`podenv tree --series " + s.Name
	if stock {
		line += " --stock"
	}
	return line + "`"
}

// CheckUnedited returns an error if the tree of s must not be deleted: one that wraps ErrEdited
// if it has edits. A series that is no longer in patches/ needs only a name.
func CheckUnedited(ctx context.Context, l layout.Layout, s series.Series, stock bool) error {
	_, err := newAssembly(l, s, Options{Stock: stock}, nil).find(ctx)
	return err
}

// Status describes the content of a tree.
type Status struct {
	Dir      string
	Release  string   // the subject of the release's commit
	UpToDate bool     // the tree without edits matches the inputs
	Commits  []Commit // on top of the release, oldest first
	Dirty    []string // paths with uncommitted changes
	Stopped  error    // the conflict or other git operation in progress, if any
	Saved    []string // refs that keep dropped edits
}

// Commit is one commit of a tree.
type Commit struct {
	ID       string
	Subject  string
	Kind     string // "patch" or "generated"
	InSeries bool   // assembly made the commit, not the user
}

// Describe returns the status of the tree of s, and does not change the tree.
func Describe(ctx context.Context, l layout.Layout, s series.Series, stock bool) (*Status, error) {
	return newAssembly(l, s, Options{Stock: stock}, nil).describe(ctx)
}

func (a *assembly) describe(ctx context.Context) (*Status, error) {
	if err := a.readTree(); err != nil {
		return nil, err
	}
	in, err := readInputs(a.series, a.options.Stock)
	if err != nil {
		return nil, err
	}
	dirty, errDirty := a.tree.dirty(ctx)
	saved, errSaved := a.tree.Lines(ctx, "for-each-ref", "--format=%(refname)", savedRefs)
	history, errHistory := a.tree.history(ctx)
	if err := errors.Join(errDirty, errSaved, errHistory); err != nil {
		return nil, err
	}
	status := &Status{
		Dir: a.tree.Dir, Release: history[0].subject(),
		UpToDate: a.state.Key == in.key(), Dirty: dirty, Stopped: a.tree.stopped(a.state), Saved: saved,
	}
	for _, c := range history[1:] {
		status.Commits = append(status.Commits, Commit{ID: c.id, Subject: c.subject(), Kind: string(c.kind), InSeries: a.state.made(c.id)})
	}
	return status, nil
}
