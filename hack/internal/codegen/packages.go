package codegen

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"podenv.dev/hack/internal/series"
)

const stagingRoot = "staging/src/"

// goPackage is a package of the tree that asks for generators.
type goPackage struct {
	dir     string // in the tree
	path    string // import path
	markers map[string][]string
	imports []string
}

// peers are the other packages whose types p's generators read.
func (p *goPackage) peers() []string {
	var peers []string
	for _, name := range []string{"conversion-gen", "conversion-gen-external-types", "defaulter-gen-input", "validation-gen-input"} {
		for _, value := range p.markers[name] {
			if strings.Contains(value, "/") {
				peers = append(peers, value)
			}
		}
	}
	return peers
}

// importPaths lists the import paths of packages.
func importPaths(packages []*goPackage) []string {
	var paths []string
	for _, p := range packages {
		paths = append(paths, p.path)
	}
	return paths
}

// importPath is the import path of a folder of the tree.
func importPath(dir string) string { return series.ImportPath(dir) }

// findPackages finds the packages that ask for generators, by import path.
func findPackages(ctx context.Context, repo *repository) (map[string]*goPackage, error) {
	out, err := repo.Quiet(ctx, "grep", "--untracked", "-z", "-I", "-E", `^// *\+k8s:([a-z-]+-gen(-[a-z-]+)?|`+modelPackage+`)=`, "--", "*.go")
	if err != nil {
		return nil, fmt.Errorf("looking for the packages that ask for generators: %w", err)
	}
	packages := map[string]*goPackage{}
	for line := range strings.Lines(out) {
		file, text, _ := strings.Cut(line, "\x00")
		match := marker.FindStringSubmatch(strings.TrimRight(text, "\n"))
		if match == nil || !isSource(file) {
			continue
		}
		dir := path.Dir(file)
		p := packages[importPath(dir)]
		if p == nil {
			p = &goPackage{dir: dir, path: importPath(dir), markers: map[string][]string{}}
			packages[p.path] = p
		}
		if value := strings.TrimSpace(match[2]); !slices.Contains(p.markers[match[1]], value) {
			p.markers[match[1]] = append(p.markers[match[1]], value)
		}
	}
	return packages, nil
}
