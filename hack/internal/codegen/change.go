package codegen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"podenv.dev/hack/internal/gitrepo"
)

// generatorSources are the folders and files of the tree that every generated file
// depends on.
var generatorSources = []string{
	"cmd/genswaggertypedocs/",
	"hack/boilerplate/boilerplate.generatego.txt",
	"pkg/generated/openapi/cmd/",
	"staging/src/k8s.io/apimachinery/pkg/api/apitesting/",
	"staging/src/k8s.io/code-generator/",
}

// change is what differs between the release and the tree.
type change struct {
	repo *repository
	// before and after are the changed files that generators read, by path. An added or
	// deleted file is in only one of them.
	before, after map[string][]byte
	// changedOutputs are the generated files that differ from the release.
	changedOutputs []string
	// everything is set if the generators themselves changed, or if Options.All asks for it.
	everything bool
}

func findChange(ctx context.Context, o Options) (*change, error) {
	repo := &repository{gitrepo.Repo{Dir: o.Tree}, o.Base}
	paths, err := repo.Changed(ctx, o.Base)
	if err != nil {
		return nil, fmt.Errorf("looking for changes in %s: %w; assemble it with `podenv tree`", o.Tree, err)
	}
	c := &change{repo: repo, after: map[string][]byte{}, everything: o.All}
	var sources []string
	for _, file := range paths {
		switch {
		case IsGenerated(file):
			c.changedOutputs = append(c.changedOutputs, file)
		case isGeneratorSource(file):
			c.everything = true
			sources = append(sources, file)
		case isSource(file):
			sources = append(sources, file)
		}
	}
	if c.before, err = repo.released(ctx, sources); err != nil {
		return nil, err
	}
	for _, file := range sources {
		data, err := os.ReadFile(filepath.Join(repo.Dir, file))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.after[file] = data
	}
	return c, c.keepInputs()
}

func isGeneratorSource(file string) bool {
	return slices.ContainsFunc(generatorSources, func(source string) bool { return strings.HasPrefix(file, source) })
}

// marker matches a comment line that asks for a generator.
var marker = regexp.MustCompile(`(?m)^// *\+k8s:([a-z0-9-]+-gen(?:-[a-z-]+)?|` + modelPackage + `)=(.*)$`)

// keepInputs drops the changed files of packages that no generator reads: those without a
// marker in any file, before or after the change.
func (c *change) keepInputs() error {
	marked := map[string]bool{} // by folder
	for _, file := range c.paths() {
		dir := path.Dir(file)
		if _, known := marked[dir]; !known {
			var err error
			if marked[dir], err = hasMarker(filepath.Join(c.repo.Dir, dir)); err != nil {
				return err
			}
		}
		marked[dir] = marked[dir] || marker.Match(c.before[file])
	}
	for _, file := range c.paths() {
		if !marked[path.Dir(file)] && !isGeneratorSource(file) {
			delete(c.before, file)
			delete(c.after, file)
		}
	}
	return nil
}

func hasMarker(dir string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		if marker.Match(data) && isSource(filepath.Base(file)) {
			return true, nil
		}
	}
	return false, nil
}

// paths lists the changed inputs, sorted.
func (c *change) paths() []string {
	return sets.List(sets.KeySet(c.before).Union(sets.KeySet(c.after)))
}

// restoreStale adds the release's content of the generated files that differ from the release
// and that no generator has written again.
func (c *change) restoreStale(ctx context.Context, out outputs) error {
	var stale []string
	for _, file := range c.changedOutputs {
		if _, ok := out[file]; !ok {
			stale = append(stale, file)
		}
	}
	released, err := c.repo.released(ctx, stale)
	if err != nil {
		return err
	}
	for _, file := range stale {
		out[file] = released[file]
	}
	return nil
}

var genclient = []byte("+genclient")

// changesClients reports whether the change adds, removes or moves a resource that client-go
// has a client for.
func (c *change) changesClients() bool {
	return c.everything || slices.ContainsFunc(c.paths(), func(file string) bool {
		return bytes.Count(c.before[file], genclient) != bytes.Count(c.after[file], genclient)
	})
}
