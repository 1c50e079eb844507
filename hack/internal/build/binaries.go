package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
)

// Result is what was built from a tree.
type Result struct {
	// Dir is the build's folder; bin/ and images/ are in it.
	Dir string
	// Version is what the components print: v1.33.13+podenv.5, or v1.33.13 for stock.
	Version string
	Tree    *source.Tree
	// Binaries has the absolute path of each component that was asked for.
	Binaries map[string]string
	// Images has the absolute path of each image's docker-archive. Images fills it.
	Images map[string]string
}

// Binaries compiles components of the tree t as it is, edits included; all of them if
// components is empty. What is up to date is kept: with nothing changed the Go tool is
// not called. Code that does not compile is a *CompileError.
func Binaries(ctx context.Context, l layout.Layout, t *source.Tree, components []string, step *progress.Step) (*Result, error) {
	components, err := selected(components)
	if err != nil {
		return nil, err
	}
	dir := l.Build(t.Name())
	unlock, err := lock(ctx, dir, step)
	if err != nil {
		return nil, err
	}
	defer unlock()

	step.Now("looking for edits in the tree")
	stamp, err := newStamp(ctx, t)
	if err != nil {
		return nil, err
	}
	key, err := binariesKey(ctx, t, dir, stamp)
	if err != nil {
		return nil, err
	}
	r := &Result{Dir: dir, Version: stamp.version, Tree: t, Binaries: map[string]string{}, Images: map[string]string{}}
	m := readManifest(dir)
	var stale []string
	for _, c := range components {
		r.Binaries[c] = filepath.Join(dir, "bin", c)
		if !m.Binaries[c].holds(r.Binaries[c], key) {
			stale = append(stale, c)
		}
	}
	if len(stale) == 0 {
		step.Cached(stamp.version + " as built before")
		return r, nil
	}
	c := &compiler{tree: t, dir: dir, flags: stamp.linkerFlags(), first: len(m.Binaries) == 0}
	for _, name := range stale {
		if err := dropDamaged(filepath.Join(c.stage(), name), r.Binaries[name], m.Binaries[name]); err != nil {
			return nil, err
		}
	}
	if err := c.compile(ctx, stale, step); err != nil {
		return nil, err
	}
	if err := publish(m, c.stage(), r, key, stale, step); err != nil {
		return nil, err
	}
	return r, nil
}

// lock keeps a second podenv out of the build's folder dir.
func lock(ctx context.Context, dir string, step *progress.Step) (unlock func(), err error) {
	return lockfile.Lock(ctx, filepath.Join(dir, ".lock"), "that builds in "+dir, step)
}

// binariesKey hashes all that the binaries of t are made from: the tree's files, the
// flags, and the Go toolchain with its settings.
func binariesKey(ctx context.Context, t *source.Tree, dir string, s stamp) (string, error) {
	content, err := treeContent(ctx, t.Dir, filepath.Join(dir, "work"))
	if err != nil {
		return "", err
	}
	toolchain, err := run.Command(ctx, "go", "env", "GOVERSION", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT").
		Dir(t.Dir).Env(goEnv...).Output()
	if err != nil {
		return "", err
	}
	return keyOf(content, toolchain, strings.Join(goFlags, " "), s.linkerFlags()), nil
}

// publish gives the binaries in the folder stage their names in bin/, all of them
// complete, and lists them in the manifest.
func publish(m manifest, stage string, r *Result, key string, components []string, step *progress.Step) error {
	step.Now("checking the binaries")
	if err := os.MkdirAll(filepath.Join(r.Dir, "bin"), 0o755); err != nil {
		return err
	}
	made := make([]artifact, len(components))
	var g errgroup.Group
	for i, c := range components {
		g.Go(func() error {
			if err := linkOver(filepath.Join(stage, c), r.Binaries[c]); err != nil {
				return err
			}
			var err error
			made[i], err = newArtifact(r.Binaries[c], key, r.Version)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, c := range components {
		m.Binaries[c] = made[i]
	}
	return m.write(r.Dir)
}

// linkOver makes to another name of the file from, in one step. The Go tool never
// writes into a finished binary but replaces it, so the two part at the next build.
func linkOver(from, to string) error {
	beside := to + ".new"
	if err := remove(beside); err != nil {
		return err
	}
	if err := os.Link(from, beside); err != nil {
		return err
	}
	if err := os.Rename(beside, to); err != nil {
		return err
	}
	// rename(2) keeps both names if they are of one file already.
	return remove(beside)
}

// dropDamaged removes the staged binary if it is the same file as the one published, and
// someone has written into that since a was taken down: the Go tool would not mend it.
func dropDamaged(staged, published string, a artifact) error {
	s, err := os.Stat(staged)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	p, err := os.Stat(published)
	if err != nil || !os.SameFile(s, p) || a.is(p) {
		return nil //nolint:nilerr // what is not published cannot have been damaged there
	}
	// The time alone says little: the Go tool dates binaries anew that it finds up to date.
	now, err := newArtifact(published, a.Key, a.Version)
	if err != nil || now.SHA256 == a.SHA256 {
		return err
	}
	return os.Remove(staged)
}

func remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
