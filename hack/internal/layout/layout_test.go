package layout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindWalksUpToTheRepository(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "hack", "internal")
	for _, dir := range []string{deep, filepath.Join(root, "patches")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := Find(deep)
	if err != nil || l.Root != root {
		t.Errorf("Find gave %q, %v; want %q", l.Root, err, root)
	}
}

func TestFindOutsideOfARepositorySaysSo(t *testing.T) {
	if _, err := Find(t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "not inside a podenv repository") {
		t.Errorf("error is %v", err)
	}
}

func TestNamesOfTwoCheckoutsDiffer(t *testing.T) {
	one, two := Layout{Root: "/one"}.UniqueName("podenv-test"), Layout{Root: "/two"}.UniqueName("podenv-test")
	if one == two || one != (Layout{Root: "/one"}).UniqueName("podenv-test") {
		t.Errorf("%s and %s: want one name for each checkout", one, two)
	}
}
