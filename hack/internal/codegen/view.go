package codegen

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// view is a private copy of the tree's sources for one generator: generators that run in
// parallel in one folder would see each other's half-written files. Its files are hard links,
// so that it takes a fraction of a second. Those that a generator may write are copied or
// removed first.
type view struct{ tree, dir string }

// ignoredFolders are the tree's top folders that no generator reads.
var ignoredFolders = map[string]bool{
	".git": true, "_output": true, "vendor": true, "test": true, "docs": true, "logo": true,
	"build": true, "cluster": true, "CHANGELOG": true, "LICENSES": true,
}

// newView creates a view of tree in the new folder dir.
func newView(tree, dir string) (*view, error) {
	v := &view{tree: tree, dir: dir}
	return v, filepath.WalkDir(tree, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(tree, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if ignoredFolders[rel] || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(dir, rel), 0o755)
		}
		if !entry.Type().IsRegular() || !isInput(rel) {
			return nil
		}
		to := filepath.Join(dir, rel)
		// The go command rewrites go.mod and go.sum in place.
		if base := entry.Name(); base == "go.mod" || base == "go.sum" || os.Link(name, to) != nil {
			return copyFile(name, to)
		}
		return nil
	})
}

func isInput(file string) bool {
	if strings.HasSuffix(file, "_test.go") {
		return slices.ContainsFunc(fixtureSets, func(f fixtureSet) bool { return path.Dir(file) == f.dir })
	}
	return path.Ext(file) != ".md" && path.Base(file) != "OWNERS"
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// path is the path of the tree's file in the view.
func (v *view) path(file string) string { return filepath.Join(v.dir, file) }

// breakLinks replaces the Go files of dir by copies, so that a generator may rewrite them.
func (v *view) breakLinks(dir string) error {
	files, err := filepath.Glob(v.path(dir + "/*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		original := filepath.Join(v.tree, dir, filepath.Base(file))
		if err := errors.Join(os.Remove(file), copyFile(original, file)); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes files that a generator will write again.
func (v *view) remove(files ...string) error {
	for _, file := range files {
		if err := os.RemoveAll(v.path(file)); err != nil {
			return err
		}
	}
	return nil
}

// collect returns the view's content of files. Those that do not exist are nil.
func (v *view) collect(files ...string) (outputs, error) {
	out := outputs{}
	for _, file := range files {
		data, err := os.ReadFile(v.path(file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		out[file] = data
	}
	return out, nil
}

// writeIfChanged writes data to file, or deletes file if data is nil.
func writeIfChanged(file string, data []byte) error {
	if data == nil {
		return os.RemoveAll(file)
	}
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), renameio.WriteFile(file, data, 0o644))
}

// generatedNames are the names of generated Go and proto files in any folder.
var generatedNames = []string{
	"generated.pb.go",
	"generated.proto",
	"types_swagger_doc_generated.go",
	"zz_generated.conversion.go",
	"zz_generated.deepcopy.go",
	"zz_generated.defaults.go",
	modelNamesName,
	"zz_generated.openapi.go",
	"zz_generated.prerelease-lifecycle.go",
	"zz_generated.validations.go",
}

const (
	stagingRoot         = "staging/src/"
	clientGo            = stagingRoot + "k8s.io/client-go"
	applyConfigurations = clientGo + "/applyconfigurations"
	openAPIDefinitions  = "pkg/generated/openapi"
	definitionsName     = "zz_generated.openapi.go"
	modelNamesName      = "zz_generated.model_name.go"
)

// clientFolders are the folders of client-go that generators write.
var clientFolders = []string{
	applyConfigurations,
	clientGo + "/kubernetes",
	clientGo + "/listers",
	clientGo + "/informers",
}

// handWritten are the files of clientFolders that no generator writes. Files named
// X_expansion.go are hand-written too, except generated_expansion.go.
var handWritten = []string{
	applyConfigurations + "/doc.go",
	applyConfigurations + "/meta/v1/unstructured.go",
	clientGo + "/informers/doc.go",
	clientGo + "/kubernetes/doc.go",
	clientGo + "/kubernetes/import.go",
	clientGo + "/listers/doc.go",
	clientGo + "/listers/generic_helpers.go",
}

// IsGenerated reports whether Generate writes file, a path in the tree with forward slashes.
func IsGenerated(file string) bool {
	dir, name := path.Split(file)
	dir = strings.TrimSuffix(dir, "/")
	switch {
	case slices.Contains(generatedNames, name):
		return !isExcluded(file)
	case dir == "api/openapi-spec":
		return name == "swagger.json"
	case dir == "api/openapi-spec/v3", dir == "api/discovery":
		return path.Ext(name) == ".json"
	case path.Ext(name) == ".go" && slices.ContainsFunc(clientFolders, func(folder string) bool { return strings.HasPrefix(file, folder+"/") }):
		byHand := strings.HasSuffix(name, "_test.go") || slices.Contains(handWritten, file) ||
			strings.HasSuffix(name, "_expansion.go") && name != "generated_expansion.go"
		return !byHand
	}
	return slices.Contains([]string{".json", ".pb", ".yaml"}, path.Ext(name)) &&
		slices.ContainsFunc(fixtureSets, func(f fixtureSet) bool { return dir == f.dir+"/testdata/HEAD" })
}

// isExcluded reports whether file is test data or an example, which other generators write.
func isExcluded(file string) bool {
	for dir := range strings.SplitSeq(path.Dir(file), "/") {
		if dir == "testdata" || dir == "_codegenignore" || dir == "vendor" || dir == "_output" {
			return true
		}
	}
	return strings.HasPrefix(file, "staging/src/k8s.io/code-generator/")
}

// isSource reports whether file is Go that a generator reads: neither a test nor generated.
func isSource(file string) bool {
	return path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !IsGenerated(file) && !isExcluded(file)
}
