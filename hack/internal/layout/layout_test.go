package layout

import (
	"errors"
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

func TestTreesOfAnEarlierPodenvMoveOutOfOutput(t *testing.T) {
	l := Layout{Root: t.TempDir()}
	edit := func(path string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "edit"), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	old := filepath.Join(l.Output(), "trees", "v1.33")
	edit(old)
	if err := l.MoveTrees(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(l.Output()); err != nil { // it is safe to delete
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(l.Tree("v1.33"), "edit")); err != nil {
		t.Error(err)
	}
	if err := l.MoveTrees(); err != nil {
		t.Errorf("the second time: %v", err)
	}
	edit(old)
	if err := l.MoveTrees(); err == nil || !strings.Contains(err.Error(), "are trees of one series") {
		t.Errorf("with two trees of one series the error is %v", err)
	}
	if err := os.RemoveAll(old); err != nil {
		t.Fatal(err)
	}
	edit(filepath.Join(l.Output(), "rebase", "v1.32"))
	if err := l.MoveTrees(); err == nil || !strings.Contains(err.Error(), "save what you need") {
		t.Errorf("with a rebase in progress the error is %v", err)
	}
}

func TestNamesOfTwoCheckoutsDiffer(t *testing.T) {
	one, two := Layout{Root: "/one"}.UniqueName("podenv-test"), Layout{Root: "/two"}.UniqueName("podenv-test")
	if one == two || one != (Layout{Root: "/one"}).UniqueName("podenv-test") {
		t.Errorf("%s and %s: want one name for each checkout", one, two)
	}
}
