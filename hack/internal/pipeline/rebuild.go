package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/publish"
	"podenv.dev/hack/internal/run"
)

// Rebuild is Published in a copy of this repository in another folder, with nothing that an earlier
// build has left: it assembles the tree again, installs the Debian packages, and compiles everything
// with an empty cache of Go and another number of processors. done deletes the copy, and what the
// images are read from.
func (p *Pipeline) Rebuild(ctx context.Context, platforms, names []string) (images []publish.Image, done func(), err error) {
	s, end := p.step("copy of the repository")
	dir, err := elsewhere(ctx, p.Layout)
	if err := end(err); err != nil {
		return nil, nil, err
	}
	env := map[string]string{"GOCACHE": filepath.Join(dir, "_output", "gocache"), "GOMAXPROCS": strconv.Itoa(runtime.NumCPU() + 1)}
	for key, value := range env {
		before, set := os.LookupEnv(key)
		if err := os.Setenv(key, value); err != nil {
			return nil, nil, err
		}
		defer func() {
			if os.Unsetenv(key); set {
				os.Setenv(key, before) //nolint:errcheck // it was that before
			}
		}()
	}
	fmt.Fprintf(s.Log(), "building in %s\n", dir)
	again := *p
	again.Layout = layout.Layout{Root: dir}
	images, _, err = again.Published(ctx, platforms, names)
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, fmt.Errorf("building again: %w", err)
	}
	return images, func() { os.RemoveAll(dir) }, nil
}

// elsewhere copies the repository, edits included, without what git ignores.
func elsewhere(ctx context.Context, l layout.Layout) (dir string, err error) {
	parent := filepath.Join(l.Output(), "verify")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(parent, "build-"); err != nil {
		return "", err
	}
	err = run.Command(ctx, "bash", "-euo", "pipefail", "-c",
		`git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory="$1"`, "bash", dir).Dir(l.Root).Run()
	if err != nil {
		os.RemoveAll(dir)
	}
	return dir, err
}
