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
// with an empty cache of Go and another number of processors. It calls use with the images.
func (p *Pipeline) Rebuild(ctx context.Context, platforms, names []string, use func([]publish.Image) error) error {
	dir, err := elsewhere(ctx, p.Layout)
	if err != nil {
		return fmt.Errorf("copying the repository: %w", err)
	}
	defer os.RemoveAll(dir)
	for key, value := range map[string]string{
		"GOCACHE": filepath.Join(dir, "_output", "gocache"), "GOMAXPROCS": strconv.Itoa(runtime.NumCPU() + 1),
	} {
		if err := os.Setenv(key, value); err != nil { // this process builds nothing else
			return err
		}
	}
	again := *p
	again.Layout = layout.Layout{Root: dir}
	images, err := again.Published(ctx, platforms, names)
	if err != nil {
		return fmt.Errorf("building again: %w", err)
	}
	return use(images)
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
