package fuzz

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/source"
)

// Added returns the fuzz targets that a series adds to its tree, which is m's folder. Those that came from
// the repository at root are left out: they are fuzzed there. So are the targets of
// packages in which the series adds none.
func (m Module) Added(ctx context.Context, tree *source.Tree, root string, step *progress.Step) ([]Target, error) {
	packages, err := treePackages(ctx, tree, root)
	if err != nil {
		return nil, err
	}
	return m.Targets(ctx, packages, step)
}

// treePackages returns the import paths of the packages in which the tree has fuzz targets
// of the series.
func treePackages(ctx context.Context, tree *source.Tree, root string) ([]string, error) {
	files, err := tree.Changed(ctx)
	if err != nil {
		return nil, err
	}
	var fuzzed []string
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, file)); err == nil {
			continue
		}
		has, err := hasTarget(filepath.Join(tree.Dir, file))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return nil, err
		}
		if has {
			fuzzed = append(fuzzed, file)
		}
	}
	return source.Packages(fuzzed), nil
}
