package source

import (
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

// newFile is a file of this module that goes into the tree.
type newFile struct {
	path    string // from the root of the repository and of the tree, with slashes
	content []byte
	mode    string // as git writes it
}

// readNewFiles lists the new files in the order of their paths. Everything under the
// roots counts but what an editor leaves there (names with a leading dot or a
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
			files = append(files, f)
			return err
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
	if f.content, err = os.ReadFile(path); err != nil {
		return newFile{}, err
	}
	return f, f.check()
}

// check refuses a Go file that imports from this module, for in a tree its packages
// have other import paths.
func (f newFile) check() error {
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

// write puts the file into the tree in dir.
func (f newFile) write(dir string) error {
	path := filepath.Join(dir, filepath.FromSlash(f.path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	perm := os.FileMode(0o644)
	if f.mode == "100755" {
		perm = 0o755
	}
	return renameio.WriteFile(path, f.content, perm)
}
