package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
)

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
	// InSeries is set for a commit that assembly made; the others are a person's.
	InSeries bool
}

// Describe says what the tree of s holds, without changing it.
func Describe(ctx context.Context, l layout.Layout, s series.Series, stock bool) (*Status, error) {
	return newAssembly(l, s, Options{Stock: stock}, nil).describe(ctx)
}

func (a *assembly) describe(ctx context.Context) (*Status, error) {
	st, err := readState(a.tree.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w of %s: run %s", ErrNoTree, treeName(a.series, a.options.Stock), treeCommand(a.series, a.options.Stock))
	}
	if err != nil {
		return nil, err
	}
	in, err := readInputs(a.layout, a.series, a.options.Stock)
	if err != nil {
		return nil, err
	}
	status := &Status{Dir: a.tree.dir, UpToDate: st.Key == in.key(), Stopped: a.tree.stopped(st)}
	if status.Dirty, err = a.tree.dirty(ctx); err != nil {
		return nil, err
	}
	if status.Saved, err = a.tree.lines(ctx, "for-each-ref", "--format=%(refname)", savedRefs); err != nil {
		return nil, err
	}
	if status.Patched, status.Generated, err = a.tree.treeHashes(ctx, st); err != nil {
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
		status.Commits = append(status.Commits, Commit{ID: c.id, Subject: subject, Kind: string(c.kind), InSeries: st.made(c.id)})
	}
	return status, nil
}

// treeHashes are those of the commits that assembly made last.
func (r repo) treeHashes(ctx context.Context, st *state) (patched, generated string, err error) {
	last := len(st.Steps) - 1
	if generated, err = r.quiet(ctx, "rev-parse", st.Steps[last].Commit+"^{tree}"); err != nil {
		return "", "", err
	}
	if st.Steps[last].Kind != kindGenerated {
		return generated, generated, nil
	}
	patched, err = r.quiet(ctx, "rev-parse", st.Steps[last-1].Commit+"^{tree}")
	return patched, generated, err
}
