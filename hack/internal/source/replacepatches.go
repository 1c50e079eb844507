package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
)

// ErrNewerPatches is returned by WritePatches where a patch file would be lost that the tree
// was not made from.
var ErrNewerPatches = errors.New("patch files have changed since the tree was made from them")

// replacePatches makes the series' patch files those of commits. Files are written before
// old ones are deleted, each as a whole.
func (a *assembly) replacePatches(ctx context.Context, commits []treeCommit, owners *ownership) (changed []string, err error) {
	made, err := os.MkdirTemp("", "podenv-patches-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(made)
	var names []string
	for _, c := range commits {
		if c.kind != kindPatch {
			continue
		}
		name, err := a.tree.formatPatch(ctx, c.id, made, len(names)+1, owners.notInPatches(c.paths))
		if err != nil {
			return nil, err
		}
		if name != "" {
			names = append(names, name)
		}
	}
	old, err := patchNames(a.series.Dir)
	if err != nil {
		return nil, err
	}
	if err := a.refuseNewer(made, old); err != nil {
		return nil, err
	}
	a.state.Patches = nil
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(made, name))
		if err != nil {
			return changed, err
		}
		a.state.Patches = append(a.state.Patches, patchHash(data))
		path := filepath.Join(a.series.Dir, name)
		if sameContent(path, data) {
			continue
		}
		if err := renameio.WriteFile(path, data, 0o644); err != nil {
			return changed, err
		}
		changed = append(changed, a.relative(path))
	}
	for _, name := range old {
		if slices.Contains(names, name) {
			continue
		}
		path := filepath.Join(a.series.Dir, name)
		if err := os.Remove(path); err != nil {
			return changed, err
		}
		changed = append(changed, a.relative(path))
	}
	return changed, nil
}

// refuseNewer refuses to replace patch files that came after the tree was made: pulled from
// someone else, or edited by hand. Each must be the one that is about to be written (it is in
// made then) or one that the tree knows.
func (a *assembly) refuseNewer(made string, names []string) error {
	var newer []string
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(a.series.Dir, name))
		if err != nil {
			return err
		}
		if !sameContent(filepath.Join(made, name), data) && !slices.Contains(a.state.Patches, patchHash(data)) {
			newer = append(newer, a.relative(filepath.Join(a.series.Dir, name)))
		}
	}
	if len(newer) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; if the tree has no edits, bring it up to date with %s; else move these files away, write the patches, and put what they change into the tree as commits",
		ErrNewerPatches, some(newer), treeCommand(a.series, false))
}

// relative is path as a person at the root of the repository writes it.
func (a *assembly) relative(path string) string {
	if rel, err := filepath.Rel(a.layout.Root, path); err == nil {
		return rel
	}
	return path
}
