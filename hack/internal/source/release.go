package source

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// releaseRepoVersion is raised when importRelease writes another commit for the same modules.
const releaseRepoVersion = "1"

// releaseBranch is the branch of the cached repository.
const releaseBranch = "refs/heads/release"

// releaseRepo returns a bare repository whose only commit is the release. It creates the
// repository from the module cache, and caches it under key.
func releaseRepo(ctx context.Context, l layout.Layout, s series.Series, key string, step *progress.Step) (repo, error) {
	r := repo{gitrepo.Repo{Dir: filepath.Join(l.Cache("source"), s.Release+"-"+key[:16]+".git"), Bare: true, Log: step.Log()}}
	unlock, err := lockfile.Lock(ctx, r.Dir+".lock", "that works on "+r.Dir, step)
	if err != nil {
		return repo{}, err
	}
	defer unlock()
	if _, err := os.Stat(r.Dir); err == nil {
		return r, nil
	}
	step.Now("getting the modules of %s", s.Release)
	zips, err := downloadModules(ctx, s)
	if err != nil {
		return repo{}, err
	}
	step.Now("committing %s", s.Release)
	imported := repo{gitrepo.Repo{Dir: r.Dir + ".new", Bare: true, Log: step.Log()}}
	defer os.RemoveAll(imported.Dir)
	if err := os.RemoveAll(imported.Dir); err != nil {
		return repo{}, err
	}
	if err := imported.importRelease(ctx, s, zips); err != nil {
		return repo{}, fmt.Errorf("committing %s: %w", s.Release, err)
	}
	return r, os.Rename(imported.Dir, r.Dir)
}

// importRelease creates the repository from the modules' archives. git fast-import writes one
// pack as fast as the archives can be read; `git add` takes several times as long.
func (r repo) importRelease(ctx context.Context, s series.Series, zips []moduleZip) error {
	date, err := releaseDate(s, zips)
	if err != nil {
		return err
	}
	if err := runOutsideRepo(ctx, r.Log, "init", "--quiet", "--bare", "--template=", "--initial-branch=release", r.Dir); err != nil {
		return err
	}
	pr, pw := io.Pipe()
	streamErr := make(chan error, 1)
	go func() {
		err := streamRelease(pw, s, zips, date)
		pw.CloseWithError(err)
		streamErr <- err
	}()
	// --done makes a truncated stream an error.
	gitErr := r.Cmd(ctx, "-c", "pack.compression=1", "-c", "core.bigFileThreshold=512m",
		"fast-import", "--quiet", "--depth=0", "--done").Stdin(pr).Run()
	pr.CloseWithError(errors.New("git fast-import ended"))
	return errors.Join(<-streamErr, gitErr)
}

// releaseDate is the date of the release's tag, from the metadata of its module.
func releaseDate(s series.Series, zips []moduleZip) (time.Time, error) {
	for _, z := range zips {
		if z.Path != s.Module() {
			continue
		}
		data, err := os.ReadFile(z.Info)
		if err != nil {
			return time.Time{}, err
		}
		var info struct{ Time time.Time }
		err = json.Unmarshal(data, &info)
		return info.Time.UTC(), err
	}
	return time.Time{}, fmt.Errorf("the series' go.mod does not require %s", s.Module())
}

// streamRelease writes the release in the format of git fast-import.
func streamRelease(w io.Writer, s series.Series, zips []moduleZip, date time.Time) error {
	b := bufio.NewWriterSize(w, 1<<20)
	body := "The module " + s.Module() + "."
	if !s.IsTekton() {
		body = "The modules " + kubernetes + " and, in staging/src, k8s.io/* " + s.Staging() + ".\nThe samples and vendor/ are left out, for they cannot be had as modules."
	}
	text := message(kindRelease, s.Project()+" "+s.Release, body)
	fmt.Fprintf(b, "feature done\ncommit %s\ncommitter %s <%s> %d +0000\ndata %d\n%s\n",
		releaseBranch, gitrepo.AuthorName, gitrepo.AuthorEmail, date.Unix(), len(text), text)
	edit := newModuleEdit(s, zips)
	for _, z := range zips {
		if err := streamModule(b, z, edit); err != nil {
			return fmt.Errorf("reading %s: %w", z.Zip, err)
		}
	}
	fmt.Fprint(b, "done\n")
	return b.Flush()
}

func streamModule(b *bufio.Writer, z moduleZip, edit *moduleEdit) error {
	archive, err := zip.OpenReader(z.Zip)
	if err != nil {
		return err
	}
	defer archive.Close()
	folder := ""
	if z.Path != edit.series.Module() {
		folder = "staging/src/" + z.Path + "/"
	}
	for _, f := range archive.File {
		path := folder + strings.TrimPrefix(f.Name, z.String()+"/")
		if strings.HasPrefix(path, "vendor/") {
			// A module has no vendored packages, but go would look for them if the folder existed.
			continue
		}
		content, err := fs.ReadFile(archive, f.Name)
		if err != nil {
			return err
		}
		if content, err = edit.apply(z, path, content); err != nil {
			return err
		}
		fmt.Fprintf(b, "M %s inline %s\ndata %d\n", fileMode(content), quotePath(path), len(content))
		b.Write(content) //nolint:errcheck // the error comes with Flush
		if err := b.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

// fileMode is a file's mode in git's notation. Modules have no file modes, so files with a
// shebang are executable.
func fileMode(content []byte) string {
	if bytes.HasPrefix(content, []byte("#!")) {
		return "100755"
	}
	return "100644"
}

// quotePath quotes a path for git fast-import.
func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// samplePrefix is the prefix of the modules that a release requires but that are not published.
const samplePrefix = "k8s.io/sample-"

// stagingDir is the folder of a staging module in a release.
func stagingDir(module string) string { return "./staging/src/" + module }

// moduleEdit adapts a release's go.mod and go.work to the modules that are available.
type moduleEdit struct {
	series series.Series
	pinned map[string]bool
}

func newModuleEdit(s series.Series, zips []moduleZip) *moduleEdit {
	e := &moduleEdit{series: s, pinned: map[string]bool{}}
	for _, z := range zips {
		e.pinned[z.Path] = true
	}
	return e
}

// apply returns the content of the file of z at path in the tree.
func (e *moduleEdit) apply(z moduleZip, path string, content []byte) ([]byte, error) {
	switch {
	case e.series.IsTekton():
	case path == "go.mod":
		return e.goMod(content)
	case path == "go.work":
		return e.goWork(content)
	case path == "staging/src/"+z.Path+"/go.mod" && z.Version.Version != e.series.Staging():
		return e.withoutRequirements(path, content)
	}
	return content, nil
}

// withoutRequirements removes the requirements, which are those of another release, from a
// go.mod. The release itself requires whatever its packages import.
func (e *moduleEdit) withoutRequirements(path string, content []byte) ([]byte, error) {
	f, err := modfile.Parse(path, content, nil)
	if err != nil {
		return nil, err
	}
	pins := e.series.Mod
	if pins.Go == nil {
		return nil, fmt.Errorf("%s has no go line: add that of the go.mod of %s", pins.Syntax.Name, e.series.Release)
	}
	only := new(modfile.File)
	if err := errors.Join(only.AddModuleStmt(f.Module.Mod.Path), only.AddGoStmt(pins.Go.Version)); err != nil {
		return nil, err
	}
	return only.Format()
}

// goMod drops the samples, and requires the other staging modules at their own version instead
// of v0.0.0. They require each other at that version, so `go build -mod=mod` would otherwise
// write it to go.mod, which would count as an edit of the tree. Their folders still replace them.
func (e *moduleEdit) goMod(content []byte) ([]byte, error) {
	f, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Clone(f.Replace) {
		if r.New.Path != stagingDir(r.Old.Path) {
			continue
		}
		if strings.HasPrefix(r.Old.Path, samplePrefix) {
			if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return nil, err
			}
		} else if !e.pinned[r.Old.Path] {
			return nil, fmt.Errorf("%s has the staging module %s, which %s/go.mod does not require: add %s %s",
				e.series.Release, r.Old.Path, e.series.Pins, r.Old.Path, e.series.Staging())
		}
	}
	for _, r := range slices.Clone(f.Require) {
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
	for _, u := range slices.Clone(f.Use) {
		if strings.HasPrefix(u.Path, stagingDir(samplePrefix)) {
			if err := f.DropUse(u.Path); err != nil {
				return nil, err
			}
		}
	}
	f.Cleanup()
	return modfile.Format(f.Syntax), nil
}
