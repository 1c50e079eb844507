package fuzz

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// Added returns the fuzz targets that a series adds to its tree m. Those that came from
// the repository at root are left out: they are fuzzed there. So are the targets of
// packages in which the series adds none.
func (m Module) Added(ctx context.Context, root string, step *progress.Step) ([]Target, error) {
	packages, err := treePackages(ctx, m.Dir, root)
	if err != nil {
		return nil, err
	}
	return m.Targets(ctx, packages, step)
}

// treePackages returns the import paths of the packages in which the tree at dir has
// fuzz targets of the series.
func treePackages(ctx context.Context, dir, root string) ([]string, error) {
	files, err := changedTests(ctx, dir)
	if err != nil {
		return nil, err
	}
	var packages []string
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(root, file)); err == nil {
			continue
		}
		has, err := hasTarget(filepath.Join(dir, file))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return nil, err
		}
		if has {
			packages = append(packages, importPath(path.Dir(file)))
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages), nil
}

// changedTests lists the files of tests in which the tree differs from its release,
// uncommitted ones included.
func changedTests(ctx context.Context, dir string) ([]string, error) {
	release, err := run.Command(ctx, "git", "-C", dir, "rev-list", "--max-parents=0", "HEAD").Output()
	if err != nil {
		return nil, err
	}
	changed, err := run.Command(ctx, "git", "-C", dir, "diff", "--name-only", release, "--", "*_test.go").Output()
	if err != nil {
		return nil, err
	}
	added, err := run.Command(ctx, "git", "-C", dir, "ls-files", "--others", "--exclude-standard", "--", "*_test.go").Output()
	if err != nil {
		return nil, err
	}
	return append(strings.Fields(changed), strings.Fields(added)...), nil
}

// importPath is that of a folder of a Kubernetes tree.
func importPath(folder string) string {
	if staged, ok := strings.CutPrefix(folder, "staging/src/"); ok {
		return staged
	}
	return "k8s.io/kubernetes/" + folder
}
