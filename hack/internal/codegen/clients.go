package codegen

import (
	"context"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
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
	pluralExceptions := p.pluralExceptions()
	return together(ctx,
		func(ctx context.Context) (outputs, error) {
			served, err := servedGroups(v)
			if err != nil {
				return nil, err
			}
			args := append([]string{
				"--clientset-name=kubernetes",
				"--input-base=k8s.io/api",
				"--apply-configuration-package=" + importPath(applyConfigurations),
				pluralExceptions,
			}, p.clientFlags...)
			for _, version := range served {
				args = append(args, "--input="+version)
			}
			return p.clientFolder(ctx, v, "client-gen", clientGo+"/kubernetes", clientGo, args)
		},
		func(ctx context.Context) (outputs, error) {
			const folder = clientGo + "/listers"
			return p.clientFolder(ctx, v, "lister-gen", folder, folder, append([]string{pluralExceptions}, p.inputs(types)...))
		},
		func(ctx context.Context) (outputs, error) {
			const folder = clientGo + "/informers"
			args := []string{
				"--single-directory",
				"--versioned-clientset-package=k8s.io/client-go/kubernetes",
				"--listers-package=k8s.io/client-go/listers",
				pluralExceptions,
			}
			return p.clientFolder(ctx, v, "informer-gen", folder, folder, append(args, p.inputs(types)...))
		})
}

// pluralExceptions is the argument with the kinds whose plural the generators get wrong.
func (m *minor) pluralExceptions() string {
	flag := "--plural-exceptions=Endpoints:Endpoints"
	for _, kind := range m.unpluralized {
		flag += "," + kind + ":" + kind
	}
	return flag
}

// clientFolder generates the files of folder again, with a tool that writes to target.
func (p *pipeline) clientFolder(ctx context.Context, v *view, tool, folder, target string, args []string) (outputs, error) {
	defer p.log.start("client-go's " + path.Base(folder))()
	before, err := listGo(v, folder)
	if err != nil {
		return nil, err
	}
	if err := v.remove(before...); err != nil {
		return nil, err
	}
	args = append(p.outputFolder(v, target), args...)
	if err := p.generator(ctx, v, tool, args...).Run(); err != nil {
		return nil, fmt.Errorf("generating client-go's %s: %w", path.Base(folder), err)
	}
	after, err := listGo(v, folder)
	if err != nil {
		return nil, err
	}
	return v.collect(append(before, after...)...)
}

// outputFolder returns the arguments that make a generator write packages below folder.
func (p *pipeline) outputFolder(v *view, folder string) []string {
	if p.gopath {
		return []string{"--output-base=" + v.sources(), "--output-package=" + importPath(folder)}
	}
	return []string{"--output-dir=" + v.path(folder), "--output-pkg=" + importPath(folder)}
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
