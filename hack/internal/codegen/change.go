package codegen

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"podenv.dev/hack/internal/digest"
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
	// before and after are the changed files that generators read, by path. before lacks those
	// that were added; in after, those that were deleted are nil.
	before, after outputs
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
	c := &change{repo: repo, everything: o.All}
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
	if c.after, err = (&view{dir: repo.Dir}).collect(sources...); err != nil {
		return nil, err
	}
	return c, c.keepInputs()
}

func isGeneratorSource(file string) bool {
	return slices.ContainsFunc(generatorSources, func(source string) bool { return strings.HasPrefix(file, source) })
}

// marker matches a comment line that asks for a generator.
var marker = regexp.MustCompile(`(?m)^// *\+k8s:([a-z0-9-]+-gen(?:-[a-z-]+)?|` + modelPackage + `)=(.*)$`)

// isServed reports whether file is of the code that says which resources an API server serves.
func isServed(file string) bool {
	dir := path.Dir(file)
	return strings.HasPrefix(file, "pkg/controlplane/") || strings.HasPrefix(file, "pkg/registry/") && (path.Base(dir) == "rest" || path.Base(dir) == "storage")
}

// keepInputs drops the changed files that no generator reads: those of packages without a marker in
// any file, before or after the change, but for what the OpenAPI specs follow from.
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
		if !marked[path.Dir(file)] && !isGeneratorSource(file) && !isServed(file) {
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
	return slices.Sorted(maps.Keys(c.after))
}

// restoreStale adds the release's content of the generated files that differ from the release
// and that no generator has written again.
func (c *change) restoreStale(ctx context.Context, out outputs) error {
	stale := slices.DeleteFunc(c.changedOutputs, func(file string) bool {
		_, generated := out[file]
		return generated
	})
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

// outputVersion must be raised when Generate writes other files for the same inputs.
const outputVersion = "4"

// InputsKey is a hash of everything that Generate's output depends on: equal keys of the same
// release mean equal generated files. It reads only what changed since the release, and takes
// well under a second.
func InputsKey(ctx context.Context, o Options) (string, error) {
	c, err := findChange(ctx, o)
	if err != nil {
		return "", err
	}
	parts := []string{"codegen", outputVersion, o.Release, strconv.FormatBool(o.All), string(openAPISpec)}
	for _, file := range c.paths() {
		if data := c.after[file]; data != nil {
			parts = append(parts, "file", file, string(data))
		} else {
			parts = append(parts, "deleted", file)
		}
	}
	if c.changesClients() {
		groups, err := (&view{dir: c.repo.Dir}).collect(groupList)
		if err != nil {
			return "", err
		}
		parts = append(parts, "groups", string(groups[groupList]))
	}
	return digest.Of(parts...), nil
}

// repository is the git repository of a tree.
type repository struct {
	gitrepo.Repo
	base string // commit of the release
}

// released returns the release's content of files, without those that it does not have.
func (r *repository) released(ctx context.Context, files []string) (map[string][]byte, error) {
	if len(files) == 0 {
		return nil, nil
	}
	var names strings.Builder
	for _, file := range files {
		fmt.Fprintf(&names, "%s:%s\n", r.base, file)
	}
	batch, err := r.Cmd(ctx, "cat-file", "--batch").Stdin(strings.NewReader(names.String())).Output()
	if err != nil {
		return nil, err
	}
	contents := map[string][]byte{}
	for _, file := range files {
		var header string
		header, batch, _ = strings.Cut(batch, "\n")
		if strings.HasSuffix(header, " missing") {
			continue
		}
		size, err := strconv.Atoi(header[strings.LastIndexByte(header, ' ')+1:])
		if err != nil {
			return nil, fmt.Errorf("reading %s of the release: git cat-file printed %q", file, header)
		}
		// Output trims the newlines at the end, which belong to the last file.
		if missing := size - len(batch); missing > 0 {
			batch += strings.Repeat("\n", missing)
		}
		contents[file] = []byte(batch[:size])
		batch = strings.TrimPrefix(batch[size:], "\n")
	}
	return contents, nil
}
