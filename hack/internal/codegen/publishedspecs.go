package codegen

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// openAPISpec is the source of the command that updates api/openapi-spec. It is compiled in
// the tree.
//
//go:embed openapispec/main.go openapispec/schemas.go openapispec/spec.go
var openAPISpec embed.FS

// fromSchemas generates what depends on the OpenAPI definitions in v. It returns nil if the change
// reaches none.
func (p *pipeline) fromSchemas(ctx context.Context, v *view) (outputs, error) {
	if !p.reachesOpenAPI() {
		return nil, nil
	}
	if err := os.CopyFS(v.path("cmd"), openAPISpec); err != nil {
		return nil, err
	}
	done := p.log.start("OpenAPI schemas")
	bin := filepath.Join(p.work, "bin") + "/"
	err := p.command(ctx, v, "go", "build", "-tags=podenv_tree", "-o", bin, "./cmd/openapispec", "./pkg/generated/openapi/cmd/models-schema").Run()
	done()
	if err != nil {
		return nil, fmt.Errorf("compiling the OpenAPI definitions: %w", err)
	}
	out, err := p.specs(ctx, v, bin+"openapispec")
	if err != nil {
		return nil, err
	}
	configurations, err := p.applyConfigurations(ctx, v, bin+"models-schema")
	maps.Copy(out, configurations)
	return out, err
}

// specs generates the published OpenAPI specs from those of the release: the tree's may have
// been generated from earlier types.
func (p *pipeline) specs(ctx context.Context, v *view, command string) (outputs, error) {
	defer p.log.start("OpenAPI specs")()
	listed, err := p.repo.Fields(ctx, "ls-tree", "-r", "-z", "--name-only", p.repo.base, "--", openAPISpecs)
	if err != nil {
		return nil, err
	}
	files := slices.DeleteFunc(listed, func(file string) bool { return !IsGenerated(file) })
	released, err := p.repo.released(ctx, files)
	if err != nil {
		return nil, err
	}
	before, after := view{dir: filepath.Join(p.work, "released-specs")}, view{dir: filepath.Join(p.work, "specs")}
	if err := outputs(released).write(before.dir); err != nil {
		return nil, err
	}
	err = p.command(ctx, v, command, "-specs="+before.path(openAPISpecs), "-out="+after.path(openAPISpecs), "-feature-gates="+p.specGates).Run()
	if err != nil {
		return nil, fmt.Errorf("generating the OpenAPI specs: %w", err)
	}
	return after.collect(files...)
}
