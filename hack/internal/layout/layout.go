// Package layout defines the paths in the repository, in trees and in _output.
package layout

import (
	"errors"
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

// Find returns the layout of the repository that contains dir.
func Find(dir string) (Layout, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Layout{}, err
	}
	for root := abs; ; root = filepath.Dir(root) {
		_, errModule := os.Stat(filepath.Join(root, "go.mod"))
		_, errPatches := os.Stat(filepath.Join(root, "patches"))
		if errModule == nil && errPatches == nil {
			return Layout{Root: root}, nil
		}
		if root == filepath.Dir(root) {
			return Layout{}, fmt.Errorf("not inside a podenv repository: %s has no parent with go.mod and patches/; run podenv from its checkout", abs)
		}
	}
}

// MustFind is Find for tests, which run in the folder of their package.
func MustFind() Layout {
	l, err := Find(".")
	if err != nil {
		panic(err)
	}
	return l
}

// UniqueName adds a suffix to name that differs between the checkouts on a host. Clusters
// with such names do not collide, and no checkout deletes those of another.
func (l Layout) UniqueName(name string) string { return name + "-" + digest.Of(l.Root)[:6] }

// Patches is the folder of a Kubernetes series: its go.mod, go.sum and patches.
func (l Layout) Patches(series string) string { return filepath.Join(l.Root, "patches", series) }

// Output holds everything that podenv creates, except for trees, in which people work. It is safe
// to delete.
func (l Layout) Output() string { return filepath.Join(l.Root, "_output") }

// Logs holds the full logs of the steps.
func (l Layout) Logs() string { return filepath.Join(l.Output(), "logs") }

// Cache holds content-addressed results that several steps share.
func (l Layout) Cache(kind string) string { return filepath.Join(l.Output(), "cache", kind) }

// Tree is the assembled source of a series ("v1.33") or of its stock release
// ("v1.33-stock").
func (l Layout) Tree(name string) string { return filepath.Join(l.Root, "trees", name) }

// Rebase is the repository in which patches are carried to the series called name.
func (l Layout) Rebase(name string) string { return filepath.Join(l.Root, "trees", "rebase", name) }

// CheckOutput refuses trees that an earlier podenv made in Output, where they are not safe.
func (l Layout) CheckOutput() error {
	for _, kind := range []string{"trees", "rebase"} {
		if old, err := filepath.Glob(filepath.Join(l.Output(), kind, "*")); err != nil || len(old) > 0 {
			return errors.Join(err, fmt.Errorf("an earlier podenv made %q, where nothing is safe: save what you need of it elsewhere, and delete it", old))
		}
	}
	return nil
}

// Build holds the binaries and images of the tree called name.
func (l Layout) Build(name string) string { return filepath.Join(l.Output(), "build", name) }

// Export holds the series called name in the form for upstream.
func (l Layout) Export(name string) string { return filepath.Join(l.Output(), "export", name) }

// JUnit holds the test reports.
func (l Layout) JUnit() string { return filepath.Join(l.Output(), "junit") }
