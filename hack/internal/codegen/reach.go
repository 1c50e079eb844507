package codegen

import (
	"context"
	"maps"
	"path"
	"slices"
)

// reach says for which packages a change can change what generators write.
type reach struct {
	repo     *repository
	packages map[string]*goPackage // all packages that ask for generators, by import path
	// touched are the packages that the change edits.
	touched map[string]bool
	// affected are the touched packages, and those whose types contain, at any depth, a
	// type that the change edits.
	affected map[string]bool
	// reshaped are the packages whose types contain a type that the change deletes or gives
	// another kind, such as a struct that was a string.
	reshaped map[string]bool
	// clients is set if the change adds or removes resources that client-go has clients for.
	clients bool
	types   *typeGraph
}

func findReach(ctx context.Context, o Options, c *change) (*reach, error) {
	packages, err := findPackages(ctx, c.repo)
	if err != nil {
		return nil, err
	}
	r := &reach{repo: c.repo, packages: packages, touched: map[string]bool{}, clients: c.changesClients()}
	if r.types, err = readTypes(o.Tree, packages); err != nil {
		return nil, err
	}
	if c.everything {
		for p := range packages {
			r.touched[p] = true
		}
		r.affected, r.reshaped = r.touched, r.touched
		return r, nil
	}
	var edited, reshaped []typeName
	for _, file := range c.paths() {
		pkg := importPath(path.Dir(file))
		r.touched[pkg] = true
		e, err := findEdits(pkg, c.before[file], c.after[file])
		if err != nil {
			return nil, err
		}
		edited, reshaped = append(edited, e.types...), append(reshaped, e.reshaped...)
	}
	r.affected = r.types.containing(edited)
	r.reshaped = r.types.containing(reshaped)
	for pkg := range r.touched {
		r.affected[pkg] = true
	}
	return r, nil
}

// marked lists the packages with the marker that match, by import path.
func (r *reach) marked(name string, match func(*goPackage) bool) []*goPackage {
	var found []*goPackage
	for _, p := range slices.Sorted(maps.Keys(r.packages)) {
		pkg := r.packages[p]
		if len(pkg.markers[name]) > 0 && match(pkg) {
			found = append(found, pkg)
		}
	}
	return found
}

// isAffected reports whether the change affects p, or a package whose types p's generators read.
func (r *reach) isAffected(p *goPackage) bool {
	return r.affected[p.path] || slices.ContainsFunc(p.peers(), func(peer string) bool { return r.affected[peer] })
}
