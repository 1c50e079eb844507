package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// newFileEdit is an edit, made in a tree, of a file that this module keeps.
type newFileEdit struct {
	newFile
	deleted bool
}

// apply makes the edit in the repository at root.
func (e newFileEdit) apply(root string) error {
	if e.deleted {
		return os.Remove(filepath.Join(root, filepath.FromSlash(e.path)))
	}
	return e.write(root)
}

// newFileEdits lists what commits have done to new files and this module does not have. A
// file that has changed here too since the tree was made is an error.
func (a *assembly) newFileEdits(ctx context.Context, commits []treeCommit, owners *ownership) ([]newFileEdit, error) {
	var paths []string
	for _, c := range commits[1:] {
		for _, p := range c.paths {
			if owners.isNewFile(p) {
				paths = append(paths, p)
			}
		}
	}
	slices.Sort(paths)
	base := a.state.Steps[0].Commit
	if len(a.state.Steps) > 1 && a.state.Steps[1].Kind == kindNewFiles {
		base = a.state.Steps[1].Commit
	}
	var edits []newFileEdit
	var conflicts []error
	for _, p := range slices.Compact(paths) {
		edit, err := a.newFileEdit(ctx, p, base)
		switch {
		case err != nil:
			conflicts = append(conflicts, err)
		case edit != nil:
			edits = append(edits, *edit)
		}
	}
	return edits, errors.Join(conflicts...)
}

// newFileEdit compares the file at path in this module with what assembly took from it
// and with what the tree has, which is checked out and clean.
func (a *assembly) newFileEdit(ctx context.Context, path, base string) (*newFileEdit, error) {
	here, err := readIfThere(a.layout.Root, path)
	if err != nil {
		return nil, err
	}
	want, err := readIfThere(a.tree.dir, path)
	if err != nil || equalFiles(here, want) {
		return nil, err
	}
	// An edit here alone is for the next assembly.
	if unedited, err := a.tree.holds(ctx, base, path, want); err != nil || unedited {
		return nil, err
	}
	taken, err := a.tree.holds(ctx, base, path, here)
	if err != nil {
		return nil, err
	}
	if !taken {
		return nil, fmt.Errorf("%s was edited both in this repository and in the tree %s: take over by hand what is missing in the one or the other, until the two are equal", path, a.tree.dir)
	}
	if want == nil {
		return &newFileEdit{newFile: *here, deleted: true}, nil
	}
	return &newFileEdit{newFile: *want}, nil
}

// readIfThere reads the file at path under root; nil is a file that is not there.
func readIfThere(root, path string) (*newFile, error) {
	full := filepath.Join(root, filepath.FromSlash(path))
	info, err := os.Lstat(full)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := readNewFile(root, full, fs.FileInfoToDirEntry(info))
	return &f, err
}

// equalFiles compares two files, each nil where it is not there.
func equalFiles(a, b *newFile) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.mode == b.mode && bytes.Equal(a.content, b.content)
}

// holds tells whether commit has exactly f at path: no file, if f is nil.
func (r repo) holds(ctx context.Context, commit, path string, f *newFile) (bool, error) {
	id, err := r.quiet(ctx, "rev-parse", "--verify", "--quiet", commit+":"+path)
	if err != nil {
		// The only failure of --quiet is that there is no such file.
		return f == nil, ctx.Err()
	}
	if f == nil {
		return false, nil
	}
	r.log = nil
	ours, err := r.cmd(ctx, "hash-object", "--stdin", "--no-filters").Stdin(bytes.NewReader(f.content)).Output()
	return ours == id, err
}
