package codegen

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/run"
)

// gopath is the GOPATH of v: a folder next to it, whose src folder links to v's modules.
func (v *view) gopath() string { return v.dir + ".gopath" }

// sources is where generators that do not support modules find v's packages by import path,
// and write to them.
func (v *view) sources() string { return filepath.Join(v.gopath(), "src") }

// linkGopath creates the GOPATH of v, with symbolic links to the folders of its modules.
func (v *view) linkGopath() error {
	staged, err := filepath.Glob(v.path(stagingRoot + "k8s.io/*"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(v.sources(), "k8s.io"), 0o755); err != nil {
		return err
	}
	for _, dir := range append(staged, v.dir) {
		name := filepath.Base(dir)
		if dir == v.dir {
			name = "kubernetes"
		}
		if err := os.Symlink(dir, filepath.Join(v.sources(), "k8s.io", name)); err != nil {
			return err
		}
	}
	return nil
}

// linkDependencies creates a GOPATH in dir with the packages outside the tree that packages
// import, directly or not.
func linkDependencies(ctx context.Context, tree, dir string, packages []string) error {
	args := append([]string{"list", "-deps", "-e", "-f", "{{if not .Standard}}{{.ImportPath}}\t{{.Dir}}{{end}}"}, packages...)
	out, err := run.Command(ctx, "go", args...).Env(goEnv...).Dir(tree).Output()
	if err != nil {
		return fmt.Errorf("listing what the API packages import: %w", err)
	}
	for line := range strings.Lines(out) {
		name, from, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if from == "" || strings.HasPrefix(from, tree+string(filepath.Separator)) {
			continue
		}
		// Files, not folders: a package's folder may contain packages of other modules.
		files, err := filepath.Glob(filepath.Join(from, "*.go"))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, "src", filepath.FromSlash(name))
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		for _, file := range files {
			if err := os.Symlink(file, filepath.Join(to, filepath.Base(file))); err != nil {
				return err
			}
		}
	}
	return nil
}
