// Package layout knows where things are: in the repository, and in _output.
package layout

import (
	"fmt"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/digest"
)

// Layout names the folders of one podenv repository.
type Layout struct {
	// Root is the absolute path of the repository.
	Root string
}

// Find returns the layout of the repository that dir is in.
func Find(dir string) (Layout, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Layout{}, err
	}
	for at := abs; ; at = filepath.Dir(at) {
		if isRepository(at) {
			return Layout{Root: at}, nil
		}
		if at == filepath.Dir(at) {
			return Layout{}, fmt.Errorf("not inside a podenv repository: %s has no parent with go.mod and patches/; run podenv from its checkout", abs)
		}
	}
}

// MustFind is Find for a test, which runs in the folder of its package.
func MustFind() Layout {
	l, err := Find(".")
	if err != nil {
		panic(err)
	}
	return l
}

func isRepository(dir string) bool {
	for _, name := range []string{"go.mod", "patches"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// Own returns name with an ending that no other checkout on this host has, as a cluster's
// name: what tests make there neither meets another checkout's nor has to be deleted by it.
func (l Layout) Own(name string) string { return name + "-" + digest.Of(l.Root)[:6] }

// Patches is the folder of one series' go.mod, go.sum and patches.
func (l Layout) Patches(series string) string { return filepath.Join(l.Root, "patches", series) }

// Output is where everything that podenv makes goes. It is safe to delete.
func (l Layout) Output() string { return filepath.Join(l.Root, "_output") }

// Logs is where the full logs of the steps go.
func (l Layout) Logs() string { return filepath.Join(l.Output(), "logs") }

// Cache holds content-addressed results that several steps share.
func (l Layout) Cache(kind string) string { return filepath.Join(l.Output(), "cache", kind) }

// Tree is the assembled source named name: a series ("v1.33") or its stock
// release ("v1.33-stock").
func (l Layout) Tree(name string) string { return filepath.Join(l.Output(), "trees", name) }

// Build is where the binaries and images of the tree named name go.
func (l Layout) Build(name string) string { return filepath.Join(l.Output(), "build", name) }

// Export is where the series named name is written for upstream.
func (l Layout) Export(name string) string { return filepath.Join(l.Output(), "export", name) }

// JUnit is where test reports go.
func (l Layout) JUnit() string { return filepath.Join(l.Output(), "junit") }
