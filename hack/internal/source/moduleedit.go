package source

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/modfile"

	"podenv.dev/hack/internal/series"
)

// samplePrefix starts the modules that a release names and that cannot be had.
const samplePrefix = "k8s.io/sample-"

// stagingDir is where a release keeps a staging module.
func stagingDir(module string) string { return "./staging/src/" + module }

// moduleEdit fits a release's go.mod and go.work to the modules that there are.
type moduleEdit struct {
	series series.Series
	pinned map[string]bool
	// replaced are the go.mod files of the modules that are not of the release's version.
	replaced map[string]bool
}

func newModuleEdit(s series.Series, zips []moduleZip) *moduleEdit {
	e := &moduleEdit{series: s, pinned: map[string]bool{}, replaced: map[string]bool{}}
	for _, z := range zips {
		e.pinned[z.Path] = true
		if z.Path != kubernetes && z.Version.Version != s.Staging() {
			e.replaced["staging/src/"+z.Path+"/go.mod"] = true
		}
	}
	return e
}

// apply returns the content that the file at path has in the tree.
func (e *moduleEdit) apply(path string, content []byte) ([]byte, error) {
	switch {
	case path == "go.mod":
		return e.goMod(content)
	case path == "go.work":
		return e.goWork(content)
	case e.replaced[path]:
		return e.withoutRequirements(path, content)
	}
	return content, nil
}

// withoutRequirements takes the requirements, which are another release's, from a go.mod. The
// release requires by itself whatever its packages import.
func (e *moduleEdit) withoutRequirements(path string, content []byte) ([]byte, error) {
	f, err := modfile.Parse(path, content, nil)
	if err != nil {
		return nil, err
	}
	language, err := readLanguage(e.series)
	if err != nil {
		return nil, err
	}
	only := new(modfile.File)
	if err := errors.Join(only.AddModuleStmt(f.Module.Mod.Path), only.AddGoStmt(language)); err != nil {
		return nil, err
	}
	return only.Format()
}

// goMod drops the samples. The other staging modules, required at v0.0.0 and replaced
// by their folders, are required at their own version instead: they require one another
// so, and `go build -mod=mod` would write it into the file and leave the tree edited.
func (e *moduleEdit) goMod(content []byte) ([]byte, error) {
	f, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range append([]*modfile.Replace(nil), f.Replace...) {
		if r.New.Path != stagingDir(r.Old.Path) {
			continue
		}
		if strings.HasPrefix(r.Old.Path, samplePrefix) {
			if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return nil, err
			}
		} else if !e.pinned[r.Old.Path] {
			return nil, fmt.Errorf("%s has the staging module %s, which %s/go.mod does not require: add %s %s",
				e.series.Release, r.Old.Path, e.series.Dir, r.Old.Path, e.series.Staging())
		}
	}
	for _, r := range append([]*modfile.Require(nil), f.Require...) {
		switch {
		case strings.HasPrefix(r.Mod.Path, samplePrefix):
			err = f.DropRequire(r.Mod.Path)
		case e.pinned[r.Mod.Path]:
			err = f.AddRequire(r.Mod.Path, e.series.Staging())
		}
		if err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	return f.Format()
}

// goWork drops the samples from the workspace.
func (e *moduleEdit) goWork(content []byte) ([]byte, error) {
	f, err := modfile.ParseWork("go.work", content, nil)
	if err != nil {
		return nil, err
	}
	for _, u := range append([]*modfile.Use(nil), f.Use...) {
		if strings.HasPrefix(u.Path, stagingDir(samplePrefix)) {
			if err := f.DropUse(u.Path); err != nil {
				return nil, err
			}
		}
	}
	f.Cleanup()
	return modfile.Format(f.Syntax), nil
}
