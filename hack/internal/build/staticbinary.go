package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// StaticBinary compiles the main package pkg of podenv's own module ("./hack/images/x")
// into the file out, static and stripped. An up-to-date out is kept.
func StaticBinary(ctx context.Context, l layout.Layout, pkg, out string, step *progress.Step) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	// Beside out, so that the Go tool can rename what it linked.
	tmp, err := os.MkdirTemp(filepath.Dir(out), ".go-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	err = run.Command(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, pkg).
		Dir(l.Root).Env("GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOOS=linux", "GOTMPDIR="+tmp).
		Log(step.Log()).Run()
	if err != nil {
		return fmt.Errorf("compiling %s: %w", pkg, err)
	}
	return nil
}
