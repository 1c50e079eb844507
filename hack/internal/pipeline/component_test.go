package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
)

func TestABuildOfAnUnknownSeriesNamesTheOnesThatExist(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	for _, minor := range []string{"v1.32", "v1.33"} {
		dir := l.Patches(minor)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		mod := "module podenv.dev/patches/" + minor + "\n\nrequire k8s.io/kubernetes " + minor + ".1\n"
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := (&Pipeline{Layout: l}).Component(t.Context(), "stock:v1.99", "kubelet")
	if !errors.Is(err, series.ErrUnknown) || !strings.HasSuffix(err.Error(), "choose stock:v1.32, stock:v1.33") {
		t.Errorf("Component: %v", err)
	}
}
