package codegen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// edits are the changes of a Go file that can change what generators write.
type edits struct {
	// types are the types whose declaration or comment changed. A function that was added,
	// deleted or given another signature changes the types in its signature if generators
	// look for it: SetDefaults_X, Convert_X_To_Y, methods such as DeepCopyInto.
	types []typeName
	// reshaped are the types that were deleted or are of another kind.
	reshaped []typeName
}

// findEdits compares a file of the package pkg before and after. Either may be nil.
func findEdits(pkg string, before, after []byte) (*edits, error) {
	old, err := declarationsOf(pkg, before)
	if err != nil {
		return nil, err
	}
	current, err := declarationsOf(pkg, after)
	if err != nil {
		return nil, err
	}
	found := new(edits)
	for _, name := range sets.List(sets.KeySet(old).Union(sets.KeySet(current))) {
		a, existed := old[name]
		b, exists := current[name]
		if a.text == b.text {
			continue
		}
		found.types = append(found.types, a.types...)
		found.types = append(found.types, b.types...)
		if a.isType && existed && (!exists || a.kind != b.kind) {
			found.reshaped = append(found.reshaped, a.types...)
		}
	}
	return found, nil
}

// calledByGenerated matches the names of functions that generators look for and that
// generated code calls.
var calledByGenerated = regexp.MustCompile(`^(Convert|DeepCopy|SetDefaults)_`)

// declaration is a type, or the signature of a function.
type declaration struct {
	text   string // with the comments before it, which hold markers
	types  []typeName
	isType bool
	kind   string
}

func declarationsOf(pkg string, source []byte) (map[string]declaration, error) {
	found := map[string]declaration{}
	if source == nil {
		return found, nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, pkg, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading the API types: %w", err)
	}
	imports := importNames(file)
	text := func(from, to token.Pos) string {
		return strings.TrimSpace(string(source[fset.Position(from).Offset:fset.Position(to).Offset]))
	}
	prevEnd := file.Name.End()
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			to := decl.End()
			if decl.Body != nil {
				to = decl.Body.Lbrace
			}
			name := "func " + decl.Name.Name
			types := mentions(pkg, imports, decl.Type)
			if decl.Recv == nil && !calledByGenerated.MatchString(decl.Name.Name) {
				types = nil
			}
			if decl.Recv != nil {
				receiver := mentions(pkg, imports, decl.Recv)
				types = append(types, receiver...)
				name = fmt.Sprint("method ", receiver, decl.Name.Name)
			}
			found[name] = declaration{text: text(prevEnd, to), types: types}
		case *ast.GenDecl:
			if decl.Tok != token.TYPE {
				break
			}
			from := prevEnd
			for _, s := range decl.Specs {
				spec := s.(*ast.TypeSpec)
				d := declaration{
					text:   text(from, spec.End()),
					types:  []typeName{{pkg, spec.Name.Name}},
					isType: true,
					kind:   fmt.Sprintf("%T", spec.Type),
				}
				if ident, ok := spec.Type.(*ast.Ident); ok {
					d.kind = ident.Name
				}
				found["type "+spec.Name.Name] = d
				from = spec.End()
			}
		}
		prevEnd = decl.End()
	}
	return found, nil
}
