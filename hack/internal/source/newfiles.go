package source

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/layout"
)

// newFileRoots are the folders of this module whose files go into every tree, at the
// same path.
var newFileRoots = []string{"pkg", "staging"}

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
	return sum(newHash(f.mode, string(f.content)))
}

// readNewFiles lists the new files of this module in the order of their paths. Everything
// under the roots counts but what an editor leaves there (names with a leading dot or a
// trailing ~).
func readNewFiles(l layout.Layout) ([]newFile, error) {
	var files []newFile
	for _, root := range newFileRoots {
		err := filepath.WalkDir(filepath.Join(l.Root, root), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) && path == filepath.Join(l.Root, root) {
				return nil
			}
			if err != nil {
				return err
			}
			if d.IsDir() || editorLeaving(d.Name()) {
				return nil
			}
			f, err := readNewFile(l.Root, path, d)
			if err != nil {
				return err
			}
			files = append(files, f)
			return f.checkImports()
		})
		if err != nil {
			return nil, fmt.Errorf("reading the new files: %w", err)
		}
	}
	return files, nil
}

func editorLeaving(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~")
}

func readNewFile(root, path string, d fs.DirEntry) (newFile, error) {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return newFile{}, err
	}
	if !d.Type().IsRegular() {
		return newFile{}, fmt.Errorf("%s is not a regular file: only those go into a tree", rel)
	}
	info, err := d.Info()
	if err != nil {
		return newFile{}, err
	}
	f := newFile{path: filepath.ToSlash(rel), mode: "100644"}
	if info.Mode()&0o100 != 0 {
		f.mode = "100755"
	}
	f.content, err = os.ReadFile(path)
	return f, err
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

// checkImports refuses a Go file that imports from this module, for in a tree its packages
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

// canStandAlone tells whether a patch can bring the file by its name: it is text at a path
// that git writes without quotes.
func (f newFile) canStandAlone() bool {
	plain := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }
	return !strings.ContainsFunc(f.path, plain) && !bytes.ContainsRune(f.content, 0)
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
