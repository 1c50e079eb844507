package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// pristineVersion is raised when the commit of a release is made in another way.
const pristineVersion = "1"

// releaseBranch is the branch of the cached repository.
const releaseBranch = "refs/heads/release"

// pristine returns a bare repository whose only commit is the release, made from the
// module cache the first time and found by its key afterwards.
func pristine(ctx context.Context, l layout.Layout, s series.Series, key string, step *progress.Step) (repo, error) {
	r := repo{dir: filepath.Join(l.Cache("source"), s.Release+"-"+key[:16]+".git"), bare: true, log: step.Log()}
	unlock, err := lockfile.Lock(ctx, r.dir+".lock", "that works on "+r.dir, step)
	if err != nil {
		return repo{}, err
	}
	defer unlock()
	if _, err := os.Stat(r.dir); err == nil {
		return r, nil
	}
	beside := r.dir + ".new"
	defer os.RemoveAll(beside)
	if err := errors.Join(os.RemoveAll(beside), os.MkdirAll(beside, 0o755)); err != nil {
		return repo{}, err
	}
	step.Now("getting the modules of %s", s.Release)
	zips, err := downloadModules(ctx, s, beside)
	if err != nil {
		return repo{}, err
	}
	step.Now("committing %s", s.Release)
	made := repo{dir: filepath.Join(beside, "git"), bare: true, log: step.Log()}
	if err := made.importRelease(ctx, s, zips); err != nil {
		return repo{}, fmt.Errorf("committing %s: %w", s.Release, err)
	}
	return r, os.Rename(made.dir, r.dir)
}

// importRelease makes the repository from the modules' archives. git fast-import writes
// one pack as fast as the archives can be read; `git add` of as many files takes
// several times as long.
func (r repo) importRelease(ctx context.Context, s series.Series, zips []moduleZip) error {
	date, err := releaseDate(zips)
	if err != nil {
		return err
	}
	if err := outside(ctx, r.log, "init", "--quiet", "--bare", "--template=", "--initial-branch=release", r.dir); err != nil {
		return err
	}
	pr, pw := io.Pipe()
	streamErr := make(chan error, 1)
	go func() {
		err := streamRelease(pw, s, zips, date)
		pw.CloseWithError(err)
		streamErr <- err
	}()
	// --done: a stream that ends early is an error, not a smaller release.
	gitErr := r.cmd(ctx, "-c", "pack.compression=1", "-c", "core.bigFileThreshold=512m",
		"fast-import", "--quiet", "--depth=0", "--done").Stdin(pr).Run()
	pr.CloseWithError(errors.New("git fast-import ended"))
	if err := <-streamErr; err != nil && gitErr == nil {
		return err
	} else if err != nil {
		return errors.Join(err, gitErr)
	}
	return gitErr
}

// releaseDate is when the release was tagged, as its module says.
func releaseDate(zips []moduleZip) (time.Time, error) {
	for _, z := range zips {
		if z.Path != kubernetes {
			continue
		}
		data, err := os.ReadFile(z.info)
		if err != nil {
			return time.Time{}, err
		}
		var info struct{ Time time.Time }
		err = json.Unmarshal(data, &info)
		return info.Time.UTC(), err
	}
	return time.Time{}, fmt.Errorf("the series' go.mod does not require %s", kubernetes)
}
