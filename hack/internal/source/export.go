package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// Export brings the tree up to date and writes all of its commits as patch files to outDir,
// which it creates if needed: the new files, the patches and the generated code. `git am` of
// the files, in the order of their names, in a kubernetes/kubernetes checkout at the release's
// tag gives the content of the tree. It returns the paths of the files.
//
// An outDir that contains anything but an earlier export is an error.
func Export(ctx context.Context, l layout.Layout, s series.Series, outDir string, step *progress.Step) (files []string, err error) {
	return newAssembly(l, s, Options{}, step).exportTree(ctx, outDir)
}

func (a *assembly) exportTree(ctx context.Context, outDir string) ([]string, error) {
	if _, err := a.run(ctx); err != nil {
		return nil, err
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := refuseForeign(outDir); err != nil {
		return nil, err
	}
	if outDir, err = filepath.Abs(outDir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(outDir), 0o755); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(outDir), ".new-export-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return nil, err
	}
	var files []string
	for i, s := range a.state.Steps[1:] {
		a.step.Now("writing patch %d of %d", i+1, len(a.state.Steps)-1)
		name, patch, err := a.tree.formatPatch(ctx, s.Commit, i+1, nil)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(tmp, name), patch, 0o644); err != nil {
			return nil, err
		}
		files = append(files, filepath.Join(outDir, name))
	}
	if err := os.RemoveAll(outDir); err != nil {
		return nil, err
	}
	return files, os.Rename(tmp, outDir)
}

// refuseForeign returns an error if dir contains anything but patches of an earlier export.
func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if ok, _ := filepath.Match("[0-9][0-9][0-9][0-9]-*.patch", e.Name()); !ok || e.IsDir() {
			return fmt.Errorf("%s has %s in it, which no export has written: choose an empty folder", dir, e.Name())
		}
	}
	return nil
}
