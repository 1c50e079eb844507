package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// Written is the result of WritePatches.
type Written struct {
	// Files were written or deleted, relative to the repository's root.
	Files []string
	// Notes tell the user about unexpected results, one line each.
	Notes []string
}

// WritePatches writes the commits of the tree of s, including those of the user, to the series'
// patch files, and new files to their folders in this repository. It skips generated code. The
// same commits give the same bytes.
//
// New files are written in the version of the last commit. If a later commit changes a new file
// of an earlier one, a note says so.
//
// Uncommitted changes, a `git am` in progress, a patch file that the tree was not made from, and a new file
// that was edited both in this repository and in the tree are errors. In all these cases nothing is written.
func WritePatches(ctx context.Context, l layout.Layout, s series.Series, step *progress.Step) (*Written, error) {
	return newAssembly(l, s, Options{}, step).writePatches(ctx)
}

func (a *assembly) writePatches(ctx context.Context) (*Written, error) {
	unlock, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return a.writeCommits(ctx)
}

// writeCommits implements WritePatches. The caller holds the tree's lock.
func (a *assembly) writeCommits(ctx context.Context) (*Written, error) {
	if err := a.readCommitted(ctx); err != nil {
		return nil, err
	}
	a.step.Now("reading the commits of %s", a.tree.Dir)
	commits, err := a.tree.history(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.check(commits); err != nil {
		return nil, err
	}
	w := &Written{}
	addedBy, err := a.addedFiles(ctx, commits, w)
	if err != nil {
		return nil, err
	}
	a.step.Now("writing patches")
	edits, errEdits := a.newFileEdits(addedBy)
	patches, errPatches := a.formatPatches(ctx, commits, addedBy, w)
	if err := errors.Join(errEdits, errPatches); err != nil {
		return nil, err
	}
	if err := a.refuseNewer(patches); err != nil {
		return nil, err
	}
	// New files first, because a patch that names a missing file cannot be read.
	if err := a.applyEdits(edits, w); err != nil {
		return w, err
	}
	if err := a.replacePatches(patches, w); err != nil {
		return w, err
	}
	a.state.Written = commits[len(commits)-1].id
	return w, writeState(a.tree.Dir, a.state)
}

// readCommitted reads the state of a tree, which must have no uncommitted changes.
func (a *assembly) readCommitted(ctx context.Context) error {
	if err := a.readTree(); err != nil {
		return err
	}
	if a.state.Busy {
		return a.noTree(", only an unfinished one")
	}
	if err := a.tree.stopped(a.state); err != nil {
		return err
	}
	dirty, err := a.tree.dirty(ctx)
	if err == nil && len(dirty) > 0 {
		dir := run.Quote(a.tree.Dir)
		err = fmt.Errorf("the tree has changes that are not committed: %s; commit them with `git -C %s add --all && git -C %[2]s commit`, or as part of an earlier patch with `git -C %[2]s commit --fixup=<commit>` and `git -C %[2]s rebase --interactive --autosquash %[3]s`",
			abbreviate(dirty), dir, a.state.Steps[0].Commit[:12])
	}
	return err
}

// formatPatches returns the patches of commits by file name, without generated code. They name
// the new files in addedBy instead of containing them.
func (a *assembly) formatPatches(ctx context.Context, commits []treeCommit, addedBy map[string]string, w *Written) (map[string][]byte, error) {
	isAdded := func(p string) bool { return addedBy[p] != "" }
	patches := map[string][]byte{}
	for _, c := range commits {
		if c.kind != kindPatch {
			continue
		}
		generated := slices.DeleteFunc(slices.Clone(c.paths), func(p string) bool { return !a.gen.isGenerated(p) })
		name, full, err := a.tree.formatPatch(ctx, c.id, len(patches)+1, generated)
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		var adds, rewrites []string
		for _, p := range c.paths {
			switch {
			case addedBy[p] == c.id:
				adds = append(adds, p)
			case isAdded(p):
				rewrites = append(rewrites, p)
			}
		}
		stored, empty := split(full, isAdded, adds)
		if len(rewrites) > 0 {
			note := fmt.Sprintf("%s changes new files that earlier commits add, and their patches add them as they are now: %s", c.title(), abbreviate(rewrites))
			if empty {
				note += "; it changes nothing else and is no patch"
			}
			w.Notes = append(w.Notes, note)
		}
		if !empty {
			patches[name] = stored
		}
	}
	return patches, nil
}

// replacePatches replaces the patch files of the series by patches. It writes each file
// atomically, and deletes old ones last.
func (a *assembly) replacePatches(patches map[string][]byte, w *Written) error {
	old := a.series.Patches()
	a.state.Patches = nil
	for _, name := range sortedKeys(patches) {
		a.state.Patches = append(a.state.Patches, patchHash(patches[name]))
		if err := a.writeFile(name, patches[name], w); err != nil {
			return err
		}
	}
	for _, path := range old {
		if _, stays := patches[filepath.Base(path)]; stays {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		w.Files = append(w.Files, a.relative(path))
	}
	return nil
}

// writeFile writes a file of the series' folder, unless it has the content already.
func (a *assembly) writeFile(name string, content []byte, w *Written) error {
	path := filepath.Join(a.series.Dir, name)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	w.Files = append(w.Files, a.relative(path))
	return renameio.WriteFile(path, content, 0o644)
}

// refuseNewer refuses to replace patch files that are newer than the tree: pulled from someone else, or edited
// by hand. Each must equal the file to be written, or be one that the tree was made from or written to.
func (a *assembly) refuseNewer(patches map[string][]byte) error {
	var newer []string
	for _, path := range a.series.Patches() {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(patches[filepath.Base(path)], data) && !slices.Contains(a.state.Patches, patchHash(data)) {
			newer = append(newer, a.relative(path))
		}
	}
	if len(newer) == 0 {
		return nil
	}
	return fmt.Errorf("patch files have changed since the tree was made from them: %s; if the tree has no edits, bring it up to date with %s; else move these files away, write the patches, and put what they change into the tree as commits",
		abbreviate(newer), treeCommand(a.series, false))
}

// relative is path relative to the root of the repository.
func (a *assembly) relative(path string) string {
	if rel, err := filepath.Rel(a.layout.Root, path); err == nil {
		return rel
	}
	return path
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
