package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// Export brings the tree up to date and writes all of its commits as patch files to outDir,
// which it creates if needed: the patches with their new files, and the generated code. `git am`
// of the files, in the order of their names, in a kubernetes/kubernetes checkout at the release's
// tag gives the content of the tree. Beside each patch it writes the body of a pull request, and
// for all of them coverPage. It returns the paths of the patch files.
//
// If s has Fixes it writes those, on the release alone.
//
// With fold each patch has the generated code that it causes, which is else a patch of its own.
//
// An outDir that contains anything but an earlier export is an error.
func Export(ctx context.Context, l layout.Layout, s series.Series, outDir string, fold bool, step *progress.Step) (files []string, err error) {
	return newAssembly(l, s, Options{Stock: len(s.Fixes) > 0}, step).exportTree(ctx, outDir, fold)
}

func (a *assembly) exportTree(ctx context.Context, outDir string, fold bool) ([]string, error) {
	if _, err := a.run(ctx); err != nil {
		return nil, err
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	errForeign := refuseForeign(outDir)
	outDir, errOut := filepath.Abs(outDir)
	patches, errPatches := a.series.Describe()
	if err := errors.Join(errForeign, errOut, errPatches); err != nil {
		return nil, err
	}
	from, commits := a.tree, []string{}
	for _, s := range a.state.Steps[1:] {
		commits = append(commits, s.Commit)
	}
	if fold {
		from, commits, err = a.fold(ctx)
		defer os.RemoveAll(from.Dir)
		if err != nil {
			return nil, err
		}
	}
	needs := dependencies(patches)
	if a.options.Stock {
		needs = needsOfFixes(patches)
	}
	files := map[string][]byte{coverPage: []byte(cover(a.series, patches, needs))}
	var paths []string
	for i, commit := range commits {
		a.step.Now("writing patch %d of %d", i+1, len(commits))
		name, patch, err := from.formatPatch(ctx, commit, i+1, nil)
		if err != nil {
			return nil, err
		}
		files[name] = patch
		paths = append(paths, filepath.Join(outDir, name))
		if i == len(patches) {
			break // generated code
		}
		var first []string
		for _, n := range needs[i] {
			first = append(first, patches[n].File)
		}
		files[strings.TrimSuffix(name, ".patch")+".md"] = []byte(pullRequest(patches[i], first))
	}
	tmp := filepath.Join(filepath.Dir(outDir), ".new-"+filepath.Base(outDir))
	defer os.RemoveAll(tmp)
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755)); err != nil {
		return nil, err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(tmp, name), content, 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.RemoveAll(outDir); err != nil {
		return nil, err
	}
	return paths, os.Rename(tmp, outDir)
}

// fold makes commits of the patches that have the generated code which each causes, in a
// repository of its own. It returns that and the ids of the commits.
func (a *assembly) fold(ctx context.Context) (r repo, folded []string, err error) {
	r = repo{gitrepo.Repo{Dir: filepath.Join(filepath.Dir(a.tree.Dir), ".fold-"+filepath.Base(a.tree.Dir)), Log: a.step.Log()}}
	if err := os.RemoveAll(r.Dir); err != nil { // of an interrupted export
		return r, nil, err
	}
	if _, err := r.cloneRelease(ctx, a.tree); err != nil {
		return r, nil, err
	}
	inFold := *a
	inFold.tree = r
	parent := a.state.Steps[0].Commit
	for _, s := range a.state.Steps[1:] {
		if s.Kind != kindPatch {
			break
		}
		a.step.Now("patch %d of %d: generated code", len(folded)+1, a.state.applied())
		if err := r.Run(ctx, "checkout", "--quiet", "--force", "--detach", s.Commit); err != nil {
			return r, nil, err
		}
		if _, err := inFold.stageGenerated(ctx); err != nil {
			return r, nil, err
		}
		if err := r.Run(ctx, "reset", "--quiet", "--soft", parent); err != nil {
			return r, nil, err
		}
		if err := r.Run(ctx, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--reuse-message="+s.Commit); err != nil {
			return r, nil, err
		}
		if parent, err = r.head(ctx); err != nil {
			return r, nil, err
		}
		folded = append(folded, parent)
	}
	diff, err := r.Quiet(ctx, "diff", "--stat", parent, a.state.last())
	if err == nil && diff != "" {
		err = fmt.Errorf("the last patch with its generated code is not the tree of series %s: export without --fold-generated:\n%s", a.series.Name, diff)
	}
	return r, folded, err
}

// refuseForeign returns an error if dir contains anything but the files of an earlier export.
func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !exported.MatchString(e.Name()) {
			return fmt.Errorf("%s has %s in it, which no export has written: choose an empty folder", dir, e.Name())
		}
	}
	return nil
}

// exported matches the names of the files of an export.
var exported = regexp.MustCompile(`^\d{4}-.*\.(patch|md)$`)
