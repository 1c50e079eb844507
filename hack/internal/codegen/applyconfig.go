package codegen

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// applyConfigurations generates client-go's apply configurations from the API types and from the
// schemas that schemaCommand prints. It generates all of them: some files list every one.
func (p *pipeline) applyConfigurations(ctx context.Context, v *view, schemaCommand string) (outputs, error) {
	models, err := p.command(ctx, v, schemaCommand).Log(io.Discard).Output()
	if err != nil {
		return nil, fmt.Errorf("generating apply configurations: %w", err)
	}
	schemaFile := filepath.Join(p.work, "models.json")
	if err := os.WriteFile(schemaFile, []byte(models), 0o644); err != nil {
		return nil, err
	}
	types, err := externalTypes(v)
	if err != nil {
		return nil, err
	}
	args := append([]string{"--openapi-schema=" + schemaFile}, p.inputs(types)...)
	return p.clientFolder(ctx, v, "applyconfiguration-gen", applyConfigurations, applyConfigurations, args)
}

// externalTypes lists the packages that have apply configurations.
func externalTypes(v *view) ([]string, error) {
	const api = stagingRoot + "k8s.io/api"
	var packages []string
	err := fs.WalkDir(os.DirFS(v.path(api)), ".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "types.go" {
			packages = append(packages, importPath(path.Join(api, path.Dir(file))))
		}
		return err
	})
	return append(packages, "k8s.io/apimachinery/pkg/apis/meta/v1"), err
}

// listGo lists the generated Go files below dir.
func listGo(v *view, dir string) ([]string, error) {
	var files []string
	err := fs.WalkDir(os.DirFS(v.path(dir)), ".", func(name string, entry fs.DirEntry, err error) error {
		if file := path.Join(dir, name); err == nil && !entry.IsDir() && IsGenerated(file) {
			files = append(files, file)
		}
		return err
	})
	return files, err
}
