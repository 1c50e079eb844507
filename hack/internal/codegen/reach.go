package codegen

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/series"
)

// reach says for which packages a change can change what generators write.
type reach struct {
	repo     *repository
	packages map[string]*goPackage // all packages that ask for generators, by import path
	// touched are the packages that the change edits.
	touched map[string]bool
	// affected are the touched packages, and those that import them at any depth: their types
	// may contain one that the change edits.
	affected map[string]bool
	// clients is set if the change adds or removes resources that client-go has clients for.
	clients bool
	// served is set if the change is of the code that says which resources an API server serves.
	served bool
}

func findReach(ctx context.Context, o Options, c *change) (*reach, error) {
	packages, err := findPackages(ctx, c.repo)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		if p.imports, err = p.readImports(o.Tree); err != nil {
			return nil, err
		}
	}
	r := &reach{repo: c.repo, packages: packages, touched: map[string]bool{}, clients: c.changesClients(), served: slices.ContainsFunc(c.paths(), isServed)}
	if c.everything {
		for p := range packages {
			r.touched[p] = true
		}
		r.affected = r.touched
		return r, nil
	}
	for _, file := range c.paths() {
		r.touched[series.ImportPath(path.Dir(file))] = true
	}
	importers := map[string][]string{}
	for _, p := range packages {
		for _, imported := range p.imports {
			importers[imported] = append(importers[imported], p.path)
		}
	}
	r.affected = closure(r.touched, func(pkg string) []string { return importers[pkg] })
	return r, nil
}

// readImports lists what the sources of the package import.
func (p *goPackage) readImports(tree string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(tree, p.dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var imports []string
	for _, name := range files {
		if !isSource(path.Join(p.dir, filepath.Base(name))) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return nil, fmt.Errorf("reading the API types: %w", err)
		}
		for _, spec := range file.Imports {
			imports = append(imports, strings.Trim(spec.Path.Value, "\"`"))
		}
	}
	return imports, nil
}

// closure returns packages and all that next leads to from them, at any depth.
func closure(packages map[string]bool, next func(pkg string) []string) map[string]bool {
	found := map[string]bool{}
	for left := slices.Collect(maps.Keys(packages)); len(left) > 0; {
		pkg := left[0]
		left = left[1:]
		if !found[pkg] {
			found[pkg] = true
			left = append(left, next(pkg)...)
		}
	}
	return found
}

// importedBy returns packages and those that they import, at any depth.
func (r *reach) importedBy(packages map[string]bool) map[string]bool {
	return closure(packages, func(pkg string) []string {
		if p := r.packages[pkg]; p != nil {
			return p.imports
		}
		return nil
	})
}

// marked lists the packages with the marker that match, by import path.
func (r *reach) marked(name string, match func(*goPackage) bool) []*goPackage {
	var found []*goPackage
	for _, p := range slices.Sorted(maps.Keys(r.packages)) {
		pkg := r.packages[p]
		if len(pkg.markers[name]) > 0 && match(pkg) {
			found = append(found, pkg)
		}
	}
	return found
}

// isAffected reports whether the change affects p, or a package whose types p's generators read.
func (r *reach) isAffected(p *goPackage) bool {
	return r.affected[p.path] || slices.ContainsFunc(p.peers(), func(peer string) bool { return r.affected[peer] })
}

// goPackage is a package of the tree that asks for generators.
type goPackage struct {
	dir     string // in the tree
	path    string // import path
	markers map[string][]string
	imports []string
}

// peers are the other packages whose types p's generators read.
func (p *goPackage) peers() []string {
	var peers []string
	for _, name := range []string{"conversion-gen", "conversion-gen-external-types", "defaulter-gen-input", "validation-gen-input"} {
		for _, value := range p.markers[name] {
			if strings.Contains(value, "/") {
				peers = append(peers, value)
			}
		}
	}
	return peers
}

// importPaths lists the import paths of packages.
func importPaths(packages []*goPackage) []string {
	var paths []string
	for _, p := range packages {
		paths = append(paths, p.path)
	}
	return paths
}

// findPackages finds the packages that ask for generators, by import path.
func findPackages(ctx context.Context, repo *repository) (map[string]*goPackage, error) {
	out, err := repo.Quiet(ctx, "grep", "--untracked", "-z", "-I", "-E", `^// *\+k8s:([a-z-]+-gen(-[a-z-]+)?|`+modelPackage+`)=`, "--", "*.go")
	if err != nil {
		return nil, fmt.Errorf("looking for the packages that ask for generators: %w", err)
	}
	packages := map[string]*goPackage{}
	for line := range strings.Lines(out) {
		file, text, _ := strings.Cut(line, "\x00")
		match := marker.FindStringSubmatch(strings.TrimRight(text, "\n"))
		if match == nil || !isSource(file) {
			continue
		}
		dir := path.Dir(file)
		p := packages[series.ImportPath(dir)]
		if p == nil {
			p = &goPackage{dir: dir, path: series.ImportPath(dir), markers: map[string][]string{}}
			packages[p.path] = p
		}
		if value := strings.TrimSpace(match[2]); !slices.Contains(p.markers[match[1]], value) {
			p.markers[match[1]] = append(p.markers[match[1]], value)
		}
	}
	return packages, nil
}
