package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// build compiles the suite called name, and returns a copy of the test binary in dir, which
// no other run replaces. The go command links only if something has changed.
func build(ctx context.Context, l layout.Layout, name, dir string, step *progress.Step) (string, error) {
	if _, err := os.Stat(filepath.Join(l.Root, "test", "e2e", name)); err != nil || name != filepath.Base(name) {
		return "", fmt.Errorf("no suite %q in test/e2e", name)
	}
	cache := l.Cache("e2e")
	unlock, err := lockfile.Lock(ctx, filepath.Join(cache, name+".lock"), "that compiles the suite "+name, step)
	if err != nil {
		return "", err
	}
	defer unlock()
	step.Now("compiling the suite (minutes the first time: it has all of Kubernetes' e2e framework)")
	built := filepath.Join(cache, name+".test")
	if err := run.Command(ctx, "go", "test", "-c", "-ldflags=-s -w", "-o", built, "./test/e2e/"+name).Dir(l.Root).Log(step.Log()).Run(); err != nil {
		return "", fmt.Errorf("compiling test/e2e/%s: %w", name, err)
	}
	return filepath.Join(dir, name+".test"), run.Command(ctx, "cp", built, dir).Run()
}

// buildPlugin builds `kubectl podenv` for the specs that run it, into the folder of podenv.
func buildPlugin(ctx context.Context, l layout.Layout, dir string, step *progress.Step) error {
	unlock, err := lockfile.Lock(ctx, filepath.Join(l.Cache("e2e"), "kubectl-podenv.lock"), "that builds kubectl-podenv", step)
	if err != nil {
		return err
	}
	defer unlock()
	return run.Command(ctx, "make", "--no-print-directory", "kubectl-podenv", "PLUGIN="+filepath.Join(dir, "kubectl-podenv")).Dir(l.Root).Log(step.Log()).Run()
}
