package fuzz

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
)

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	args = append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.test"}, args...)
	if err := run.Command(t.Context(), "git", args...).Run(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyTargetsThatTheSeriesAddsAreFuzzedInTheTree(t *testing.T) {
	tree, root := t.TempDir(), t.TempDir()
	const target = "package a\n\nfunc FuzzIt(f *testing.F) {}\n"
	git(t, tree, "init", "--quiet")
	write(t, filepath.Join(tree, "pkg/own/own_test.go"), target) // Kubernetes' own
	write(t, filepath.Join(tree, "pkg/changed/changed_test.go"), "package a\n")
	git(t, tree, "add", "--all")
	git(t, tree, "commit", "--quiet", "--message=release")
	write(t, filepath.Join(tree, "pkg/changed/changed_test.go"), "package a\n// func FuzzNot(\n")
	write(t, filepath.Join(tree, "pkg/apis/core/validation/envfiles_test.go"), target)
	write(t, filepath.Join(tree, "staging/src/k8s.io/api/core/v1/env_test.go"), target)
	write(t, filepath.Join(tree, "pkg/kubelet/envfile/fuzz_test.go"), target)
	write(t, filepath.Join(root, "pkg/kubelet/envfile/fuzz_test.go"), target) // runs there
	git(t, tree, "add", "--all")
	git(t, tree, "commit", "--quiet", "--message=patch")
	write(t, filepath.Join(tree, "pkg/edited/edited_test.go"), target) // not yet committed

	got, err := treePackages(t.Context(), &source.Tree{Dir: tree}, root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"k8s.io/api/core/v1", "k8s.io/kubernetes/pkg/apis/core/validation", "k8s.io/kubernetes/pkg/edited"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
