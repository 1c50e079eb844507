package codegen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// boilerplate is the license header of generated files.
const boilerplate = "hack/boilerplate/boilerplate.generatego.txt"

// methods generates the methods of the API types, which do not compile without them.
func (p *pipeline) methods(ctx context.Context) (outputs, error) {
	v, err := p.view("methods")
	if err != nil {
		return nil, err
	}
	out, err := p.perPackage(ctx, v, true)
	if err != nil {
		return nil, err
	}
	docs, err := p.swaggerDocs(ctx, v)
	maps.Copy(out, docs)
	return out, err
}

// functions generates the functions that take API types.
func (p *pipeline) functions(ctx context.Context) (outputs, error) {
	v, err := p.view("functions")
	if err != nil {
		return nil, err
	}
	return p.perPackage(ctx, v, false)
}

// perPackage runs the generators that write one Go file per package: those of methods, or the
// others.
func (p *pipeline) perPackage(ctx context.Context, v *view, methods bool) (outputs, error) {
	out := outputs{}
	for _, g := range p.packageGenerators {
		packages := p.marked(g.marker, p.isAffected)
		if g.methods != methods || len(packages) == 0 {
			continue
		}
		all := p.marked(g.marker, func(*goPackage) bool { return true })
		if g.allPackages {
			packages = all
		}
		var files []string
		for _, pkg := range packages {
			files = append(files, path.Join(pkg.dir, g.file))
		}
		if err := v.remove(files...); err != nil {
			return nil, err
		}
		output := []string{"--output-file=" + g.file}
		if p.gopath {
			output = []string{"--output-file-base=" + strings.TrimSuffix(g.file, ".go"), "--output-base=" + v.sources()}
		}
		args := append(output, g.flags...)
		if g.allFlag != "" {
			args = append(args, g.allFlag+"="+strings.Join(importPaths(all), ","))
		}
		if err := p.generator(ctx, v, g.tool, append(args, p.inputs(importPaths(packages))...)...).Run(); err != nil {
			return nil, fmt.Errorf("generating %s: %w", g.file, err)
		}
		made, err := v.collect(files...)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, made)
	}
	return out, nil
}

// docsModel is the package whose descriptions file gives that of a new package its header.
const docsModel = stagingRoot + "k8s.io/api/core/v1"

var packageClause = regexp.MustCompile(`(?m)^package \w+$`)

// swaggerDocs generates the descriptions that API types have at run time, for the touched
// packages that have the file already and for new packages of k8s.io/api.
func (p *pipeline) swaggerDocs(ctx context.Context, v *view) (outputs, error) {
	const name = "types_swagger_doc_generated.go"
	out := outputs{}
	for _, touched := range slices.Sorted(maps.Keys(p.touched)) {
		pkg := p.packages[touched]
		if pkg == nil {
			continue
		}
		file := path.Join(pkg.dir, name)
		old, err := os.ReadFile(v.path(file))
		if errors.Is(err, os.ErrNotExist) && p.isNewAPI(ctx, pkg) {
			// Only the part before the descriptions is used, which is the same in every package.
			old, err = os.ReadFile(v.path(path.Join(docsModel, name)))
			old = packageClause.ReplaceAll(old, []byte("package "+path.Base(pkg.dir)))
		}
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if out[file], err = p.swaggerDoc(ctx, v, pkg.dir, old); err != nil {
			return nil, fmt.Errorf("generating %s: %w", file, err)
		}
	}
	return out, nil
}

// isNewAPI reports whether pkg has the types of a new version of an API: the release has no
// protobuf definitions of it.
func (p *pipeline) isNewAPI(ctx context.Context, pkg *goPackage) bool {
	if !strings.HasPrefix(pkg.path, "k8s.io/api/") || len(pkg.markers[protobufMarker]) == 0 {
		return false
	}
	_, err := p.repo.Quiet(ctx, "cat-file", "-e", p.repo.base+":"+path.Join(pkg.dir, "generated.proto"))
	return err != nil
}

// swaggerDoc replaces the descriptions in old, which are between two comments.
func (p *pipeline) swaggerDoc(ctx context.Context, v *view, dir string, old []byte) ([]byte, error) {
	start, end := []byte("// AUTO-GENERATED FUNCTIONS START HERE"), []byte("// AUTO-GENERATED FUNCTIONS END HERE")
	head, rest, found := bytes.Cut(old, start)
	rule, _, _ := bytes.Cut(rest, []byte("\n"))
	if !found {
		return nil, fmt.Errorf("the file has no line %q", start)
	}
	functions, err := p.command(ctx, v, "genswaggertypedocs", "-s", path.Join(dir, "types.go"), "-f", "-").Output()
	if err != nil {
		return nil, err
	}
	text := bytes.Join([][]byte{head, start, rule, []byte("\n"), []byte(functions), []byte("\n\n"), end, []byte("\n")}, nil)
	formatted, err := p.command(ctx, v, "gofmt", "-s").Stdin(bytes.NewReader(text)).Output()
	return []byte(formatted + "\n"), err
}
