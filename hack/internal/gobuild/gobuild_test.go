package gobuild

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

func TestStaticRunsOneGoCommandAtATime(t *testing.T) {
	dir := t.TempDir()
	command := "#!/bin/sh\nmkdir '" + dir + "/running' && sleep 0.1 && rmdir '" + dir + "/running'\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(command), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			step := progress.To(t.Output(), true, dir).Step("test")
			return step.End(Static(t.Context(), layout.Layout{Root: dir}, Program{Package: "."}, filepath.Join(dir, "program"), step))
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
