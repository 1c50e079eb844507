package codegen

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// foreignDefinitions are the modules that have OpenAPI definitions of their own, in their
// pkg/generated/openapi. They are not generated here.
var foreignDefinitions = []string{"k8s.io/apimachinery/", "k8s.io/apiextensions-apiserver/", "k8s.io/kube-aggregator/"}

// checkOpenAPI refuses changes to packages of foreignDefinitions.
func (p *pipeline) checkOpenAPI() error {
	if len(p.touched) == len(p.packages) {
		return nil // everything: the release itself is the reference
	}
	for _, pkg := range p.marked(openAPIMarker, p.isAffected) {
		for _, foreign := range foreignDefinitions {
			if strings.HasPrefix(pkg.path, foreign) {
				return fmt.Errorf("types of %s change, and OpenAPI definitions of kube-aggregator and apiextensions-apiserver with them, which are %w; "+
					"run the tree's hack/update-codegen.sh and keep their output in the patch", pkg.path, ErrUnsupported)
			}
		}
	}
	return nil
}

const (
	openAPIMarker = "openapi-gen"
	// modelPackage is the marker that names a package's types in OpenAPI schemas.
	modelPackage = "openapi-model-package"
)

// openAPIPackages lists the matching packages whose types openapi-gen reads.
func (p *pipeline) openAPIPackages(match func(*goPackage) bool) []*goPackage {
	packages := p.marked(openAPIMarker, match)
	if p.modelNames {
		packages = append(packages, p.marked(modelPackage, func(pkg *goPackage) bool {
			return len(pkg.markers[openAPIMarker]) == 0 && match(pkg)
		})...)
	}
	return packages
}

// reachesOpenAPI reports whether the change reaches a type that has an OpenAPI definition.
func (p *pipeline) reachesOpenAPI() bool { return len(p.openAPIPackages(p.isAffected)) > 0 }

// definitions generates the OpenAPI definitions of all types, which are in one file, and the
// methods that return the types' schema names. It returns nil if the change reaches none.
func (p *pipeline) definitions(ctx context.Context) (outputs, error) {
	const file = openAPIDefinitions + "/" + definitionsName
	if !p.reachesOpenAPI() {
		return nil, nil
	}
	v, err := p.view("openapi")
	if err != nil {
		return nil, err
	}
	defer p.log.start("OpenAPI definitions")()
	packages := p.openAPIPackages(func(*goPackage) bool { return true })
	var names []string
	if p.modelNames {
		for _, pkg := range packages {
			// In some releases, packages without the marker still have the file.
			if len(pkg.markers[modelPackage]) > 0 {
				names = append(names, path.Join(pkg.dir, modelNamesName))
			}
		}
	}
	if err := v.remove(append(names, file)...); err != nil {
		return nil, err
	}
	definitions, err := p.runOpenAPIGen(ctx, v, packages)
	if err != nil {
		return nil, err
	}
	out, err := v.collect(names...)
	if err != nil {
		return nil, err
	}
	out[file] = definitions
	return out, nil
}

// runOpenAPIGen returns the definitions of packages.
func (p *pipeline) runOpenAPIGen(ctx context.Context, v *view, packages []*goPackage) ([]byte, error) {
	dir, report := filepath.Join(p.work, "definitions"), filepath.Join(p.work, "violations")
	args := []string{"--report-filename=" + report}
	if p.modelNames {
		args = append(args, "--output-model-name-file="+modelNamesName)
	}
	file := filepath.Join(dir, definitionsName)
	if target := importPath(openAPIDefinitions); p.gopath {
		args = append(args, "--output-file-base="+strings.TrimSuffix(definitionsName, ".go"), "--output-base="+dir, "--output-package="+target)
		file = filepath.Join(dir, target, definitionsName)
	} else {
		args = append(args, "--output-file="+definitionsName, "--output-dir="+dir, "--output-pkg="+target)
	}
	if err := p.generator(ctx, v, "openapi-gen", append(args, p.inputs(importPaths(packages))...)...).Run(); err != nil {
		return nil, fmt.Errorf("generating OpenAPI definitions: %w", err)
	}
	if err := p.checkViolations(report); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// checkViolations refuses violations of the API rules that are not among the release's
// exceptions.
func (p *pipeline) checkViolations(report string) error {
	const exceptions = "api/api-rules/violation_exceptions.list"
	want, err := os.ReadFile(filepath.Join(p.tree, exceptions))
	if err != nil {
		return err
	}
	got, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for line := range bytes.Lines(want) {
		known[string(line)] = true
	}
	for line := range bytes.Lines(got) {
		if !known[string(line)] {
			return fmt.Errorf("%s: correct the type, or add the line to %s (see api/api-rules/README.md)", strings.TrimSpace(string(line)), exceptions)
		}
	}
	return nil
}
