package codegen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
)

// typeName is a named type of a package, by import path.
type typeName struct{ pkg, name string }

// typeGraph records which types mention which others. It reads only syntax: the types may not
// compile until their code is generated.
type typeGraph struct {
	mu      sync.Mutex
	users   map[typeName][]typeName    // the types that mention a type
	imports map[string]map[string]bool // by package
}

// readTypes reads the types of packages.
func readTypes(tree string, packages map[string]*goPackage) (*typeGraph, error) {
	g := &typeGraph{users: map[typeName][]typeName{}, imports: map[string]map[string]bool{}}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range packages {
		group.Go(func() error { return g.readPackage(tree, p) })
	}
	return g, group.Wait()
}

func (g *typeGraph) readPackage(tree string, p *goPackage) error {
	files, err := filepath.Glob(filepath.Join(tree, p.dir, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if !isSource(path.Join(p.dir, filepath.Base(name))) {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading the API types: %w", err)
		}
		g.add(p.path, file)
	}
	return nil
}

func (g *typeGraph) add(pkg string, file *ast.File) {
	imports := importNames(file)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.imports[pkg] == nil {
		g.imports[pkg] = map[string]bool{}
	}
	for _, imported := range imports {
		g.imports[pkg][imported] = true
	}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.TypeSpec)
			user := typeName{pkg, spec.Name.Name}
			for _, used := range mentions(pkg, imports, spec.Type) {
				g.users[used] = append(g.users[used], user)
			}
		}
	}
}

// importNames maps the package names of file's imports to their import paths. It assumes that
// the name of a package is the last element of its path, as it is for API packages.
func importNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = imported
	}
	return names
}

// mentions lists the exported named types in node.
func mentions(pkg string, imports map[string]string, node ast.Node) []typeName {
	var found []typeName
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				found = append(found, typeName{imports[x.Name], n.Sel.Name})
			}
			return false
		case *ast.Field:
			found = append(found, mentions(pkg, imports, n.Type)...)
			return false
		case *ast.Ident:
			if n.IsExported() {
				found = append(found, typeName{pkg, n.Name})
			}
		}
		return true
	})
	return found
}

// containing lists the packages of seeds and of all types that contain them.
func (g *typeGraph) containing(seeds []typeName) map[string]bool {
	packages := map[string]bool{}
	seen := map[typeName]bool{}
	for len(seeds) > 0 {
		t := seeds[len(seeds)-1]
		seeds = seeds[:len(seeds)-1]
		if seen[t] {
			continue
		}
		seen[t] = true
		packages[t.pkg] = true
		seeds = append(seeds, g.users[t]...)
	}
	return packages
}

// importedBy lists packages and those that they import, at any depth.
func (g *typeGraph) importedBy(packages map[string]bool) map[string]bool {
	found := map[string]bool{}
	var visit func(pkg string)
	visit = func(pkg string) {
		if found[pkg] {
			return
		}
		found[pkg] = true
		for imported := range g.imports[pkg] {
			visit(imported)
		}
	}
	for pkg := range packages {
		visit(pkg)
	}
	return found
}
