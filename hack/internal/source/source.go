package source

import (
	"context"
	"errors"
	"fmt"
	"os"

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
	// nothing of a person's edits since.
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

// Options are choices of Assemble.
type Options struct {
	// Stock leaves out the new files, the patches and the generators.
	Stock bool
	// Discard drops a person's edits of the tree. They stay in the tree's repository,
	// under refs/podenv/saved.
	Discard bool
}

// ErrNoTree is returned where there is no assembled tree yet.
var ErrNoTree = errors.New("no assembled tree")

// Assemble makes the tree of s, or brings it up to date: only what follows the first
// input that changed is done again. An unchanged tree costs a hash of the inputs and
// a git status.
//
// A tree that a person has edited is left alone, with ErrEdited. A patch that does not
// apply is a *ConflictError, and the tree is left where `git am` stopped. After any
// other error, and after a crash, the next call goes on from a consistent state.
func Assemble(ctx context.Context, l layout.Layout, s series.Series, o Options, step *progress.Step) (*Tree, error) {
	return newAssembly(l, s, o, step).run(ctx)
}

// Open returns the tree as it is on the disk, edits included. Without one, or with
// one that is not finished, the error is ErrNoTree.
func Open(l layout.Layout, s series.Series, stock bool) (*Tree, error) {
	dir, name := l.Tree(treeName(s, stock)), treeName(s, stock)
	st, err := readState(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w of %s: run %s", ErrNoTree, name, treeCommand(s, stock))
	case err != nil:
		return nil, err
	}
	if err := (repo{dir: dir}).stopped(st); err != nil {
		return nil, err
	}
	if st.Key == "" {
		return nil, fmt.Errorf("%w of %s, only a half of one: run %s", ErrNoTree, name, treeCommand(s, stock))
	}
	return newTree(dir, s, stock, st), nil
}

func newTree(dir string, s series.Series, stock bool, st *state) *Tree {
	return &Tree{Dir: dir, Series: s, Stock: stock, Key: sum(newHash("key", st.Key, st.Generated))}
}

// treeCommand is what a person types to get the tree.
func treeCommand(s series.Series, stock bool) string {
	line := "`podenv tree --series " + s.Name
	if stock {
		line += " --stock"
	}
	return line + "`"
}
