package codegen

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// openAPISpec is the command that brings api/openapi-spec up to date. It is compiled in
// the tree.
//
//go:embed openapispec/main.go openapispec/schemas.go openapispec/spec.go
var openAPISpec embed.FS

// fromSchemas makes what follows from the OpenAPI definitions, which v has.
func (p *pipeline) fromSchemas(ctx context.Context, v *view) (outputs, error) {
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
	made, err := p.specs(ctx, v, bin+"openapispec")
	if err != nil {
		return nil, err
	}
	configurations, err := p.applyConfigurations(ctx, v, bin+"models-schema")
	maps.Copy(made, configurations)
	return made, err
}

// specs makes the published OpenAPI specs.
func (p *pipeline) specs(ctx context.Context, v *view, command string) (outputs, error) {
	defer p.log.start("OpenAPI specs")()
	released, out := filepath.Join(p.work, "released-specs"), filepath.Join(p.work, "specs")
	if err := p.releasedSpecs(ctx, released); err != nil {
		return nil, err
	}
	err := p.command(ctx, v, command, "-specs="+released, "-out="+out, "-feature-gates="+p.specGates).Run()
	if err != nil {
		return nil, fmt.Errorf("generating the OpenAPI specs: %w", err)
	}
	made := outputs{}
	for _, pattern := range []string{"*.json", "v3/*.json"} {
		files, err := filepath.Glob(filepath.Join(out, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			made[path.Join(openAPISpecs, path.Dir(pattern), filepath.Base(file))] = data
		}
	}
	return made, nil
}

// releasedSpecs writes the specs of the release to dir. The tree's own may have been made
// from other types before.
func (p *pipeline) releasedSpecs(ctx context.Context, dir string) error {
	listed, err := p.repo.Quiet(ctx, "ls-tree", "-r", "-z", "--name-only", p.repo.base, "--", openAPISpecs)
	if err != nil {
		return err
	}
	files := slices.DeleteFunc(strings.Split(listed, "\x00"), func(file string) bool { return !IsGenerated(file) })
	specs, err := p.repo.released(ctx, files)
	if err != nil {
		return err
	}
	for file, data := range specs {
		if err := writeIfChanged(filepath.Join(dir, strings.TrimPrefix(file, openAPISpecs+"/")), data); err != nil {
			return err
		}
	}
	return nil
}
