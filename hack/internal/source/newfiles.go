package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
)

// ownModule is this module's path. A tree does not know it.
const ownModule = "podenv.dev"

// newFile is a file that the release does not have and that stands once in this repository.
type newFile struct {
	path    string // from the root of the tree, with slashes
	content []byte
	mode    string // as git writes it
}

// hash is empty for no file.
func (f *newFile) hash() string {
	if f == nil {
		return ""
	}
	return digest.Of(f.mode, string(f.content))
}

// readNewFiles lists the new files of this module in the order of their paths, as a tree has
// them. Everything in series.ModuleFolders counts but what an editor leaves there (names with a
// leading dot or a trailing ~).
func readNewFiles(l layout.Layout, header series.Boilerplate) ([]newFile, error) {
	var files []newFile
	for _, root := range series.ModuleFolders {
		err := fs.WalkDir(os.DirFS(l.Root), root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, os.ErrNotExist) && path == root {
				return nil
			}
			if err != nil {
				return err
			}
			if d.IsDir() || isEditorFile(d.Name()) {
				return nil
			}
			f, err := readWithHeader(l.Root, path, header)
			if err != nil || f == nil {
				return err
			}
			files = append(files, *f)
			return f.checkImports()
		})
		if err != nil {
			return nil, fmt.Errorf("reading the new files: %w", err)
		}
	}
	return files, nil
}

func isEditorFile(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~")
}

// readIfExists reads the file at path under root; nil is a file that is not there.
func readIfExists(root, path string) (*newFile, error) {
	full := filepath.Join(root, filepath.FromSlash(path))
	info, err := os.Lstat(full)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: only those go into a tree", path)
	}
	f := &newFile{path: path, mode: "100644"}
	if info.Mode()&0o100 != 0 {
		f.mode = "100755"
	}
	f.content, err = os.ReadFile(full)
	return f, err
}

// readWithHeader is readIfExists for a folder of this repository: it returns the file as a tree has it,
// with its license header.
func readWithHeader(folder, path string, header series.Boilerplate) (*newFile, error) {
	f, err := readIfExists(folder, path)
	if f != nil {
		f.content = header.Add(path, f.content)
	}
	return f, err
}

// checkImports refuses a Go file that imports from this module, because in a tree its packages
// have other import paths.
func (f newFile) checkImports() error {
	if !strings.HasSuffix(f.path, ".go") {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), f.path, f.content, parser.ImportsOnly)
	if err != nil {
		// The compiler says it better.
		return nil
	}
	for _, imp := range file.Imports {
		path, _ := strconv.Unquote(imp.Path.Value)
		if path == ownModule || strings.HasPrefix(path, ownModule+"/") {
			return fmt.Errorf("%s imports %s, which a Kubernetes tree does not have: new files import only the standard library, golang.org/x and k8s.io/apimachinery (a test can be in its package instead of beside it)", f.path, path)
		}
	}
	return nil
}

// canStoreSeparately reports whether a patch can bring the file by its name: it is text at a path
// that git writes without quotes, and the next tree gets the same text.
func (f newFile) canStoreSeparately(header series.Boilerplate) bool {
	plain := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }
	return !strings.ContainsFunc(f.path, plain) && !bytes.ContainsRune(f.content, 0) && header.IsReversible(f.path, f.content)
}

// write puts the file below the folder root.
func (f newFile) write(root string) error {
	path := filepath.Join(root, filepath.FromSlash(f.path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	perm := os.FileMode(0o644)
	if f.mode == "100755" {
		perm = 0o755
	}
	return renameio.WriteFile(path, f.content, perm)
}

// newFileEdit is an edit, made in a tree, of a file that stands in this repository.
type newFileEdit struct {
	path   string
	root   string // the folder that the file is below: the repository, or one of series.NewFileFolders
	header series.Boilerplate
	file   *newFile // as the tree has it; nil where it was deleted
}

// apply makes the edit in this repository.
func (e newFileEdit) apply() error {
	if e.file != nil {
		f := *e.file
		f.content = e.header.Cut(f.path, f.content)
		return f.write(e.root)
	}
	path := filepath.Join(e.root, filepath.FromSlash(e.path))
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// Folders that are empty now go too; one that is not stops it.
	for dir := filepath.Dir(path); dir != e.root && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
	}
	return nil
}

// newFileEdits lists what commits have done to new files and this repository does not have. A
// file that has changed here too since the tree was made is an error.
func (a *assembly) newFileEdits(commits []treeCommit, owners *ownership) ([]newFileEdit, error) {
	roots := map[string]string{}
	for _, c := range commits[1:] {
		for _, p := range c.paths {
			if owners.isModuleFile(p) {
				roots[p] = a.layout.Root
			}
		}
	}
	for p := range owners.addedBy {
		roots[p] = a.series.NewFileFolder(p)
	}
	for p := range a.state.NewFiles {
		if roots[p] == "" && !owners.isModuleFile(p) {
			roots[p] = a.series.NewFileFolder(p) // no commit brings it any longer
		}
	}
	var edits []newFileEdit
	var conflicts []error
	for _, p := range sortedKeys(roots) {
		edit, err := a.newFileEdit(p, roots[p], owners)
		switch {
		case err != nil:
			conflicts = append(conflicts, err)
		case edit != nil:
			edits = append(edits, *edit)
		}
	}
	return edits, errors.Join(conflicts...)
}

// newFileEdit compares the file at path below root with what the tree was made from and
// with what the tree has, which is checked out and clean.
func (a *assembly) newFileEdit(path, root string, owners *ownership) (*newFileEdit, error) {
	header, err := a.series.Boilerplate()
	if err != nil {
		return nil, err
	}
	here, err := readWithHeader(root, path, header)
	if err != nil {
		return nil, err
	}
	var want *newFile
	if owners.isAddedByPatch(path) || root == a.layout.Root {
		if want, err = readIfExists(a.tree.Dir, path); err != nil {
			return nil, err
		}
	}
	taken := a.state.NewFiles[path]
	switch {
	case here.hash() == want.hash():
		return nil, nil
	case want.hash() == taken:
		return nil, nil // an edit here alone is for the next assembly
	case here.hash() != taken:
		return nil, fmt.Errorf("%s was edited both in this repository and in the tree %s: take over by hand what is missing in the one or the other, until the two are equal", a.relative(filepath.Join(root, path)), a.tree.Dir)
	}
	return &newFileEdit{path: path, root: root, header: header, file: want}, nil
}

// others lists the other series whose patches bring the new file at path: those that share its
// common form, and those that have their own.
func (a *assembly) others(path string) (share, own []string, err error) {
	names, err := a.series.Siblings(a.layout)
	if err != nil {
		return nil, nil, err
	}
	_, common := a.series.NewFileFolders()
	for _, name := range names {
		s, err := series.Load(a.layout, name)
		if err != nil {
			return nil, nil, err
		}
		paths, err := s.NewFiles()
		switch {
		case err != nil:
			return nil, nil, err
		case name == a.series.Name || !slices.Contains(paths, path):
		case s.NewFileFolder(path) == common:
			share = append(share, name)
		default:
			own = append(own, name)
		}
	}
	return share, own, nil
}

// applyEdits makes the edits in this repository. It says which of them other series share, and
// keeps a file that is deleted in this series alone.
func (a *assembly) applyEdits(edits []newFileEdit, w *Written) error {
	_, common := a.series.NewFileFolders()
	for _, e := range edits {
		var others, own []string
		if e.root == common {
			var err error
			if others, own, err = a.others(e.path); err != nil {
				return err
			}
		}
		path := a.relative(filepath.Join(e.root, filepath.FromSlash(e.path)))
		if len(others) > 0 && e.file == nil {
			w.Notes = append(w.Notes, fmt.Sprintf("%s stays: patches of %s bring it too", path, strings.Join(others, ", ")))
		} else {
			if err := e.apply(); err != nil {
				return err
			}
			w.Files = append(w.Files, path)
			if len(others) > 0 {
				w.Notes = append(w.Notes, fmt.Sprintf("%s changes for %s too; a copy at %s/new/%s made before would be the form of %s alone", path, strings.Join(others, ", "), series.Folder(a.series.Name), e.path, a.series.Name))
			}
		}
		if len(own) > 0 && e.file != nil {
			w.Notes = append(w.Notes, fmt.Sprintf("%s: take the change over in the own form of %s (new/ beside its patches)", path, strings.Join(own, ", ")))
		}
		a.state.recordNewFile(e.path, e.file)
	}
	return nil
}

// findAddedFiles sets owners.addedBy: the files at HEAD that neither the release nor this module
// has, and that can be stored separately. For each file that lacks only the license header it
// adds a note.
func (a *assembly) findAddedFiles(ctx context.Context, commits []treeCommit, owners *ownership, w *Written) error {
	header, err := a.series.Boilerplate()
	if err != nil {
		return err
	}
	added, err := a.tree.Fields(ctx, "diff", "--name-only", "--no-renames", "--no-ext-diff", "--diff-filter=A", "-z", commits[0].id, "HEAD")
	if err != nil {
		return err
	}
	owners.addedBy = map[string]string{}
	unlicensed := map[string]bool{}
	for _, c := range commits[1:] {
		for _, p := range c.paths {
			if c.kind != kindPatch || !slices.Contains(added, p) || owners.isAddedByPatch(p) || owners.isModuleFile(p) || owners.gen.isGenerated(p) {
				continue
			}
			info, err := os.Lstat(filepath.Join(a.tree.Dir, filepath.FromSlash(p)))
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			f, err := readIfExists(a.tree.Dir, p)
			if err != nil {
				return err
			}
			if f.canStoreSeparately(header) {
				owners.addedBy[p] = c.id
			} else if !header.IsReversible(p, f.content) {
				unlicensed[p] = true
			}
		}
	}
	for _, p := range sortedKeys(unlicensed) {
		w.Notes = append(w.Notes, fmt.Sprintf("%s stays in its patch, because it has no license header: start it with the text of %s", p, a.relative(a.series.BoilerplateFile())))
	}
	return nil
}
