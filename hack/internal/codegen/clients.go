package codegen

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/hack/internal/series"
)

// groupList is the file of the tree that lists the groups and versions of the API, in the
// order in which the clientset has them.
const groupList = "hack/lib/init.sh"

// clients generates client-go's clientset, listers and informers, for all groups at once: some
// files list them all.
func (p *pipeline) clients(ctx context.Context) (outputs, error) {
	if !p.reach.clients {
		return nil, nil
	}
	v, err := p.view("clients")
	if err != nil {
		return nil, err
	}
	types, err := externalTypes(v)
	if err != nil {
		return nil, err
	}
	types = slices.DeleteFunc(types, func(pkg string) bool { return !strings.HasPrefix(pkg, "k8s.io/api/") })
	pluralExceptions := "--plural-exceptions=Endpoints:Endpoints" // the kinds whose plural the generators get wrong
	for _, kind := range p.unpluralized {
		pluralExceptions += "," + kind + ":" + kind
	}
	return p.together(ctx, map[string]generator{
		"clientset": func(ctx context.Context) (outputs, error) {
			served, err := servedGroups(v)
			if err != nil {
				return nil, err
			}
			args := append([]string{
				"--clientset-name=kubernetes",
				"--input-base=k8s.io/api",
				"--apply-configuration-package=" + series.ImportPath(applyConfigurations),
				pluralExceptions,
			}, p.clientFlags...)
			for _, version := range served {
				args = append(args, "--input="+version)
			}
			return p.clientFolder(ctx, v, "client-gen", clientGo+"/kubernetes", clientGo, args)
		},
		"listers": func(ctx context.Context) (outputs, error) {
			const folder = clientGo + "/listers"
			return p.clientFolder(ctx, v, "lister-gen", folder, folder, append([]string{pluralExceptions}, p.inputs(types)...))
		},
		"informers": func(ctx context.Context) (outputs, error) {
			const folder = clientGo + "/informers"
			args := []string{
				"--single-directory",
				"--versioned-clientset-package=k8s.io/client-go/kubernetes",
				"--listers-package=k8s.io/client-go/listers",
				pluralExceptions,
			}
			return p.clientFolder(ctx, v, "informer-gen", folder, folder, append(args, p.inputs(types)...))
		},
	})
}

// clientFolder generates the files of folder again, with a tool that writes to target.
func (p *pipeline) clientFolder(ctx context.Context, v *view, tool, folder, target string, args []string) (outputs, error) {
	before, err := listGenerated(v, folder)
	if err != nil {
		return nil, err
	}
	if err := v.remove(before...); err != nil {
		return nil, err
	}
	output, pkg := "--output-dir="+v.path(target), "--output-pkg="
	if p.gopath {
		output, pkg = "--output-base="+v.sources(), "--output-package="
	}
	args = append([]string{output, pkg + series.ImportPath(target)}, args...)
	if err := p.generator(ctx, v, tool, args...).Run(); err != nil {
		return nil, fmt.Errorf("generating client-go's %s: %w", path.Base(folder), err)
	}
	after, err := listGenerated(v, folder)
	if err != nil {
		return nil, err
	}
	return v.collect(append(before, after...)...)
}

// servedGroups lists the groups and versions that an API server serves, as folders below
// k8s.io/api: the first list of groupList without the second.
func servedGroups(v *view) ([]string, error) {
	text, err := os.ReadFile(v.path(groupList))
	if err != nil {
		return nil, err
	}
	lists := regexp.MustCompile(`(?s)\n(KUBE_AVAILABLE|KUBE_NONSERVER)_GROUP_VERSIONS="(?:\$\{[A-Z_]+:-)?([^"}]*)`).FindAllSubmatch(text, -1)
	if len(lists) != 2 {
		return nil, fmt.Errorf("%s does not list the groups of the API as expected: see hack/internal/codegen/clients.go", groupList)
	}
	fields := func(list []byte) []string { return strings.Fields(strings.ReplaceAll(string(list), "\\", " ")) }
	unserved := fields(lists[1][2])
	var folders []string
	for _, version := range fields(lists[0][2]) {
		if slices.Contains(unserved, version) {
			continue
		}
		group, version, _ := strings.Cut(version, "/")
		switch {
		case version == "":
			group, version = "core", group
		case group == "internal.apiserver.k8s.io":
			group = "apiserverinternal"
		}
		name, _, _ := strings.Cut(group, ".")
		folders = append(folders, name+"/"+version)
	}
	return folders, nil
}

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
			packages = append(packages, series.ImportPath(path.Join(api, path.Dir(file))))
		}
		return err
	})
	return append(packages, "k8s.io/apimachinery/pkg/apis/meta/v1"), err
}

// listGenerated lists the generated files below dir.
func listGenerated(v *view, dir string) ([]string, error) {
	var files []string
	err := fs.WalkDir(os.DirFS(v.path(dir)), ".", func(name string, entry fs.DirEntry, err error) error {
		if file := path.Join(dir, name); err == nil && !entry.IsDir() && IsGenerated(file) {
			files = append(files, file)
		}
		return err
	})
	return files, err
}
