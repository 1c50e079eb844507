package codegen

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// errNotMerged is wrapped where definitions cannot be merged, but can all be regenerated.
var errNotMerged = errors.New("definitions not merged")

// mergeDefinitions puts the OpenAPI definitions of part in the place of those that all
// has of the packages that replaced tells. Both are files of openapi-gen; so is the
// result, as openapi-gen would have written it for all packages.
func mergeDefinitions(all, part []byte, replaced func(pkg string) bool) ([]byte, error) {
	a, err := readDefinitions(all)
	if err != nil {
		return nil, err
	}
	b, err := readDefinitions(part)
	if err != nil {
		return nil, err
	}
	names, err := b.renames(a)
	if err != nil {
		return nil, err
	}
	texts, used := map[string]string{}, map[string]bool{}
	for goType, f := range a.functions {
		if !replaced(goType[:strings.LastIndexByte(goType, '.')]) {
			texts[goType] = a.text(f, nil, used)
		}
	}
	for goType, f := range b.functions {
		texts[goType] = b.text(f, names, used)
	}
	for name := range a.imports {
		if !used[name] {
			return nil, fmt.Errorf("%w: import %s is no longer used", errNotMerged, name)
		}
	}
	var list, functions bytes.Buffer
	for _, goType := range slices.Sorted(maps.Keys(texts)) {
		f := a.functions[goType]
		if replacement := b.functions[goType]; replacement != nil {
			f = replacement
		}
		fmt.Fprintf(&list, "\n%q: %s(ref),", goType, f.Name.Name)
		fmt.Fprintf(&functions, "\n\n%s", texts[goType])
	}
	return format.Source(slices.Concat(a.head, list.Bytes(), []byte("\n}\n}"), functions.Bytes(), []byte("\n")))
}

// definitionsFile is a parsed file of openapi-gen: a function that lists all definitions,
// and a function for each.
type definitionsFile struct {
	source    []byte
	fset      *token.FileSet
	head      []byte // up to the list
	imports   map[string]string
	functions map[string]*ast.FuncDecl // by Go type
}

func readDefinitions(source []byte) (*definitionsFile, error) {
	d := &definitionsFile{source: source, fset: token.NewFileSet(), functions: map[string]*ast.FuncDecl{}}
	file, err := parser.ParseFile(d.fset, definitionsName, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotMerged, err)
	}
	d.imports = importNames(file)
	byName := map[string]*ast.FuncDecl{}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			byName[f.Name.Name] = f
		}
	}
	list := listOf(byName["GetOpenAPIDefinitions"])
	if list == nil || len(list.Elts) != len(byName)-1 {
		return nil, fmt.Errorf("%w: the file is not as openapi-gen writes it", errNotMerged)
	}
	d.head = source[:d.offset(list.Lbrace)+1]
	for _, element := range list.Elts {
		goType, f := definitionOf(element, byName)
		if f == nil {
			return nil, fmt.Errorf("%w: the list is not as openapi-gen writes it", errNotMerged)
		}
		d.functions[goType] = f
	}
	return d, nil
}

// listOf is the map that f, which does nothing else, returns.
func listOf(f *ast.FuncDecl) *ast.CompositeLit {
	if f == nil || f.Body == nil || len(f.Body.List) != 1 {
		return nil
	}
	result, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(result.Results) != 1 {
		return nil
	}
	list, _ := result.Results[0].(*ast.CompositeLit)
	return list
}

// definitionOf takes an element `"package.Type": function(ref)` apart.
func definitionOf(element ast.Expr, byName map[string]*ast.FuncDecl) (string, *ast.FuncDecl) {
	pair, ok := element.(*ast.KeyValueExpr)
	if !ok {
		return "", nil
	}
	key, isKey := pair.Key.(*ast.BasicLit)
	call, isCall := pair.Value.(*ast.CallExpr)
	if !isKey || !isCall {
		return "", nil
	}
	name, isName := call.Fun.(*ast.Ident)
	goType, err := strconv.Unquote(key.Value)
	if !isName || err != nil || !strings.Contains(goType, ".") {
		return "", nil
	}
	return goType, byName[name.Name]
}

func (d *definitionsFile) offset(at token.Pos) int { return d.fset.Position(at).Offset }

// renames maps d's names of imports to those that other has.
func (d *definitionsFile) renames(other *definitionsFile) (map[string]string, error) {
	theirs := map[string]string{}
	for name, imported := range other.imports {
		theirs[imported] = name
	}
	names := map[string]string{}
	for name, imported := range d.imports {
		if theirs[imported] == "" {
			return nil, fmt.Errorf("%w: the import of %s is new", errNotMerged, imported)
		}
		names[name] = theirs[imported]
	}
	return names, nil
}

// text is the source of f with the names of imports renamed. It adds the names of the
// imports that it uses, after the renaming, to used.
func (d *definitionsFile) text(f *ast.FuncDecl, renames map[string]string, used map[string]bool) string {
	var b strings.Builder
	from := d.offset(f.Pos())
	ast.Inspect(f, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := selector.X.(*ast.Ident)
		if !ok || d.imports[x.Name] == "" {
			return true
		}
		name := x.Name
		if renames != nil {
			name = renames[name]
		}
		used[name] = true
		b.Write(d.source[from:d.offset(x.Pos())])
		b.WriteString(name)
		from = d.offset(x.End())
		return false
	})
	b.Write(d.source[from:d.offset(f.End())])
	return b.String()
}
