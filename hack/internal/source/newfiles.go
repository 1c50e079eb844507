package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/series"
)

// ownModule is this module's path. It cannot be imported in a tree.
const ownModule = "podenv.dev"

// newFile is a file that the release does not have.
type newFile struct {
	path    string // slash-separated, relative to the root of the tree
	content []byte
	mode    string // in git's notation: "100644" or "100755"
}

// hash is empty for no file.
func (f *newFile) hash() string {
	if f == nil {
		return ""
	}
	return digest.Of(f.mode, string(f.content))
}

// readIfExists reads the file at path under root, or returns nil if it does not exist.
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

// readWithHeader is readIfExists for a folder of this repository. It adds the license header,
// which the file has in a tree.
func readWithHeader(folder, path string, header series.Boilerplate) (*newFile, error) {
	f, err := readIfExists(folder, path)
	if f != nil {
		f.content = header.Add(path, f.content)
	}
	return f, err
}

// checkImports refuses a Go file that imports packages of this module, because in a tree they
// have other import paths.
func (f newFile) checkImports() error {
	if !strings.HasSuffix(f.path, ".go") {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), f.path, f.content, parser.ImportsOnly)
	if err != nil {
		return nil // the compiler reports it better
	}
	for _, imp := range file.Imports {
		path, _ := strconv.Unquote(imp.Path.Value)
		if path == ownModule || strings.HasPrefix(path, ownModule+"/") {
			return fmt.Errorf("%s imports %s, which a Kubernetes tree does not have: new files import only the standard library, golang.org/x and k8s.io/apimachinery (a test can be in its package instead of beside it)", f.path, path)
		}
	}
	return nil
}

// canStoreSeparately reports whether a patch can name the file instead of containing it. The file
// must be text, git must not quote its path, and the header must be reversible.
func (f newFile) canStoreSeparately(header series.Boilerplate) bool {
	quoted := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }
	return !strings.ContainsFunc(f.path, quoted) && !bytes.ContainsRune(f.content, 0) && header.IsReversible(f.path, f.content)
}

// write writes the file to its path under root.
func (f newFile) write(root string) error {
	path, perm := filepath.Join(root, filepath.FromSlash(f.path)), os.FileMode(0o644)
	if f.mode == "100755" {
		perm = 0o755
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), renameio.WriteFile(path, f.content, perm))
}

// newFileEdit is an edit in a tree of a new file that this repository stores.
type newFileEdit struct {
	path string
	root string   // the folder that path is relative to: the repository, or one of series.NewFileFolders
	file *newFile // as in the tree; nil if deleted
}

// apply makes the same edit in this repository, where files do not have the header.
func (e newFileEdit) apply(header series.Boilerplate) error {
	if e.file != nil {
		f := *e.file
		f.content = header.Cut(f.path, f.content)
		return f.write(e.root)
	}
	path := filepath.Join(e.root, filepath.FromSlash(e.path))
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// Remove parent folders as long as they are empty.
	for dir := filepath.Dir(path); dir != e.root && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
	}
	return nil
}

// newFileEdits lists the edits of new files in the tree that this repository does not have. A
// file that has also changed in the repository since the tree was made is an error.
func (a *assembly) newFileEdits(addedBy map[string]string) ([]newFileEdit, error) {
	paths := slices.AppendSeq(sortedKeys(addedBy), maps.Keys(a.state.NewFiles)) // perhaps no commit adds one of the latter any more
	slices.Sort(paths)
	var edits []newFileEdit
	var conflicts []error
	for _, p := range slices.Compact(paths) {
		edit, err := a.newFileEdit(p, addedBy[p] != "")
		switch {
		case err != nil:
			conflicts = append(conflicts, err)
		case edit != nil:
			edits = append(edits, *edit)
		}
	}
	return edits, errors.Join(conflicts...)
}

// newFileEdit compares three versions of the file at path: the stored one, the one that the tree
// was made from, and the one in the tree, which is checked out and clean, if a commit adds it.
func (a *assembly) newFileEdit(path string, added bool) (*newFileEdit, error) {
	root := a.series.NewFileFolder(path)
	stored, err := readWithHeader(root, path, a.series.Header)
	if err != nil {
		return nil, err
	}
	var inTree *newFile
	if added {
		if inTree, err = readIfExists(a.tree.Dir, path); err != nil {
			return nil, err
		}
	}
	base := a.state.NewFiles[path]
	switch {
	case stored.hash() == inTree.hash():
		return nil, nil
	case inTree.hash() == base:
		return nil, nil // edited only in the repository: the next assembly takes it
	case stored.hash() != base:
		return nil, fmt.Errorf("%s was edited both in this repository and in the tree %s: merge the edits by hand until both files are equal", a.relative(filepath.Join(root, path)), a.tree.Dir)
	}
	return &newFileEdit{path: path, root: root, file: inTree}, nil
}

// others lists the other series whose patches add the new file at path: those that use the common
// version, and those that have their own.
func (a *assembly) others(path string) (share, own []string, err error) {
	all, err := series.LoadAll(a.layout)
	if err != nil {
		return nil, nil, err
	}
	common := a.series.NewFileFolder(path)
	for _, s := range all {
		paths, err := s.NewFiles()
		switch {
		case err != nil:
			return nil, nil, err
		case s.Name == a.series.Name || s.IsTekton() != a.series.IsTekton() || !slices.Contains(paths, path):
		case s.NewFileFolder(path) == common:
			share = append(share, s.Name)
		default:
			own = append(own, s.Name)
		}
	}
	return share, own, nil
}

// applyEdits makes the edits in this repository. It notes which of them affect other series, and
// keeps a deleted file that other series use.
func (a *assembly) applyEdits(edits []newFileEdit, w *Written) error {
	ownFolder, _ := a.series.NewFileFolders()
	for _, e := range edits {
		var others, own []string
		if e.root != ownFolder {
			var err error
			if others, own, err = a.others(e.path); err != nil {
				return err
			}
		}
		path := a.relative(filepath.Join(e.root, filepath.FromSlash(e.path)))
		if len(others) > 0 && e.file == nil {
			w.Notes = append(w.Notes, fmt.Sprintf("%s stays: patches of %s also add it", path, strings.Join(others, ", ")))
		} else {
			if err := e.apply(a.series.Header); err != nil {
				return err
			}
			w.Files = append(w.Files, path)
			if len(others) > 0 {
				w.Notes = append(w.Notes, fmt.Sprintf("%s changes for %s too; to change it for %s only, copy it to %s/new/%s before you write the patches", path, strings.Join(others, ", "), a.series.Name, series.Folder(a.series.Name), e.path))
			}
		}
		if len(own) > 0 && e.file != nil {
			w.Notes = append(w.Notes, fmt.Sprintf("%s: make the same change in the own form of %s (new/ next to its patches)", path, strings.Join(own, ", ")))
		}
		a.state.recordNewFile(e.path, e.file)
	}
	return nil
}

// addedFiles maps the files at HEAD that the release does not have, and that can be stored separately, to the
// commits that add them. For each file that lacks only the license header it adds a note.
func (a *assembly) addedFiles(ctx context.Context, commits []treeCommit, w *Written) (addedBy map[string]string, err error) {
	header := a.series.Header
	added, err := a.tree.Fields(ctx, "diff", "--name-only", "--no-renames", "--no-ext-diff", "--diff-filter=A", "-z", commits[0].id, "HEAD")
	if err != nil {
		return nil, err
	}
	addedBy = map[string]string{}
	unlicensed := map[string]bool{}
	for _, c := range commits[1:] {
		for _, p := range c.paths {
			if c.kind != kindPatch || !slices.Contains(added, p) || addedBy[p] != "" || a.gen.isGenerated(p) {
				continue
			}
			info, err := os.Lstat(filepath.Join(a.tree.Dir, filepath.FromSlash(p)))
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			f, err := readIfExists(a.tree.Dir, p)
			if err != nil {
				return nil, err
			}
			if f.canStoreSeparately(header) {
				addedBy[p] = c.id
			} else if !header.IsReversible(p, f.content) {
				unlicensed[p] = true
			}
		}
	}
	for _, p := range sortedKeys(unlicensed) {
		w.Notes = append(w.Notes, fmt.Sprintf("%s stays in its patch, because it has no license header: start it with the text of %s", p, a.relative(a.series.BoilerplateFile())))
	}
	return addedBy, nil
}
