package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// build returns the test binary of the suite called name, and makes it if anything
// that goes into it has changed. The Go cache would spare most of the work, but not
// the linking of the whole e2e framework.
func build(ctx context.Context, l layout.Layout, name string, step *progress.Step) (string, error) {
	step.Now("looking at the suite's sources")
	key, err := sourceKey(ctx, l, name)
	if err != nil {
		return "", err
	}
	dir := l.Cache("e2e")
	binary := filepath.Join(dir, name+"-"+key, name+".test")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	step.Now("compiling the suite (minutes the first time: it has all of Kubernetes' e2e framework)")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	beside, err := os.MkdirTemp(dir, ".building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(beside)
	if err := run.Command(ctx, "go", "test", "-c", "-ldflags=-s -w", "-o", filepath.Join(beside, name+".test"), "./test/e2e/"+name).
		Dir(l.Root).Log(step.Log()).Run(); err != nil {
		return "", fmt.Errorf("compiling test/e2e/%s: %w", name, err)
	}
	old, err := filepath.Glob(filepath.Join(dir, name+"-*"))
	if err != nil {
		return "", err
	}
	if err := os.Rename(beside, filepath.Dir(binary)); err != nil {
		// Another run may have made the same binary meanwhile.
		if _, statErr := os.Stat(binary); statErr != nil {
			return "", err
		}
	}
	for _, stale := range old {
		if stale != filepath.Dir(binary) {
			removeUnused(stale)
		}
	}
	return binary, nil
}

// removeUnused removes the folder of a binary, 90 MB, unless a run of it goes on, which
// works in that folder. What stays is only a loss of space.
func removeUnused(dir string) {
	unlock, err := lockfile.TryLock(filepath.Join(dir, inUse))
	if err != nil {
		return
	}
	defer unlock()
	os.RemoveAll(dir) //nolint:errcheck // see above
}

// inUse is the lock file, beside a binary, that its runs share.
const inUse = ".in-use"

// sourceKey hashes all that the suite is compiled from: the toolchain, the versions of
// other modules, and the files of this one.
func sourceKey(ctx context.Context, l layout.Layout, name string) (string, error) {
	if _, err := os.Stat(filepath.Join(l.Root, "test", "e2e", name)); err != nil || name != filepath.Base(name) {
		return "", fmt.Errorf("no suite %q in test/e2e", name)
	}
	files, err := ownFiles(ctx, l, "./test/e2e/"+name)
	if err != nil {
		return "", fmt.Errorf("listing the files of test/e2e/%s: %w", name, err)
	}
	version, err := run.Command(ctx, "go", "env", "GOVERSION", "GOARCH", "GOFLAGS").Dir(l.Root).Output()
	if err != nil {
		return "", err
	}
	files = append(files, filepath.Join(l.Root, "go.mod"), filepath.Join(l.Root, "go.sum"))
	slices.Sort(files)
	files = slices.Compact(files)
	sums, err := digest.Files(files...)
	if err != nil {
		return "", err
	}
	parts := []string{version}
	for i, file := range files {
		parts = append(parts, strings.TrimPrefix(file, l.Root), sums[i])
	}
	return digest.Of(parts...)[:16], nil
}

// ownFiles lists the files of this module that the tests of pkg are compiled from.
func ownFiles(ctx context.Context, l layout.Layout, pkg string) ([]string, error) {
	list, err := run.Command(ctx, "go", "list", "-deps", "-test", "-json=Dir,ImportPath,Module,GoFiles,EmbedFiles", pkg).Dir(l.Root).Output()
	if err != nil {
		return nil, err
	}
	var files []string
	for decoder := json.NewDecoder(strings.NewReader(list)); ; {
		var p struct {
			Dir, ImportPath     string
			Module              *struct{ Main bool }
			GoFiles, EmbedFiles []string
		}
		if err := decoder.Decode(&p); err == io.EOF {
			return files, nil
		} else if err != nil {
			return nil, err
		}
		// The package pkg.test is the main function that `go test` generates.
		if p.Module == nil || !p.Module.Main || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		for _, file := range slices.Concat(p.GoFiles, p.EmbedFiles) {
			files = append(files, filepath.Join(p.Dir, file))
		}
	}
}
