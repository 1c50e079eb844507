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

func TestTreesOfAnEarlierPodenvInOutputAreRefused(t *testing.T) {
	for _, kind := range []string{"trees", "rebase"} {
		l := Layout{Root: t.TempDir()}
		folder := filepath.Join(l.Output(), kind)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := l.CheckOutput(); err != nil {
			t.Errorf("with an empty folder: %v", err)
		}
		tree := filepath.Join(folder, "v1.33")
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := l.CheckOutput(); err == nil || !strings.Contains(err.Error(), tree) || !strings.Contains(err.Error(), "save what you need") {
			t.Errorf("with %s the error is %v", tree, err)
		}
	}
}

func TestNamesOfTwoCheckoutsDiffer(t *testing.T) {
	one, two := Layout{Root: "/one"}.UniqueName("podenv-test"), Layout{Root: "/two"}.UniqueName("podenv-test")
	if one == two || one != (Layout{Root: "/one"}).UniqueName("podenv-test") {
		t.Errorf("%s and %s: want one name for each checkout", one, two)
	}
}
