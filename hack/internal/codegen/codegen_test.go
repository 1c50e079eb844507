package codegen

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/progress"
)

const coreDeepCopy = "staging/src/k8s.io/api/core/v1/zz_generated.deepcopy.go"

// fakeSet writes one file for each affected package, and counts its runs.
type fakeSet struct {
	runs int
	err  error
}

func (f *fakeSet) generate(_ context.Context, _ Options, r *reach, _ *progress.Step) (outputs, error) {
	f.runs++
	made := outputs{}
	for _, p := range r.marked("deepcopy-gen", r.isAffected) {
		made[p.dir+"/zz_generated.deepcopy.go"] = []byte("package v1\n\n// generated\n")
	}
	return made, f.err
}

func mustGenerate(t *testing.T, o Options, set *fakeSet) {
	t.Helper()
	if err := generate(t.Context(), o, set.generate, nil); err != nil {
		t.Fatal(err)
	}
}

func TestGenerateWritesTheFilesOfAffectedPackages(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	set := &fakeSet{}
	editPodSpec(t, tree)
	mustGenerate(t, Options{Tree: tree, Base: released, Work: t.TempDir()}, set)
	want := []string{
		"staging/src/k8s.io/api/apps/v1/zz_generated.deepcopy.go",
		coreTypes,
		coreDeepCopy,
	}
	if got := strings.Fields(git(t, tree, "diff", "--name-only")); !slices.Equal(got, want) {
		t.Errorf("changed: %q, want %q", got, want)
	}
}

func TestGenerateRunsNothingWithoutAChangeOfAPITypes(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	set := &fakeSet{}
	write(t, tree, map[string]string{kubelet: "package kubelet\n"})
	mustGenerate(t, Options{Tree: tree, Base: released, Work: t.TempDir()}, set)
	if set.runs != 0 {
		t.Errorf("generators ran %d times, want 0", set.runs)
	}
}

// A series of an unknown minor can have patches that need no generators.
func TestGenerateOfAnUnknownMinorFailsWhereAPITypesChange(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	o := Options{Tree: tree, Base: released, Work: t.TempDir(), Release: "v1.99.1"}
	write(t, tree, map[string]string{kubelet: "package kubelet\n"})
	if err := Generate(t.Context(), o, nil); err != nil {
		t.Errorf("a change that needs no generator: %v", err)
	}
	editPodSpec(t, tree)
	err := Generate(t.Context(), o, nil)
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "v1.99.1") || !strings.Contains(err.Error(), "v1.33") {
		t.Errorf("a changed API type: got %v, want ErrUnsupported that names the release and those that are known", err)
	}
}

func TestGenerateOfAllRunsWithoutAChange(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	set := &fakeSet{}
	mustGenerate(t, Options{Tree: tree, Base: released, Work: t.TempDir(), All: true}, set)
	if got := strings.Fields(git(t, tree, "diff", "--name-only")); set.runs != 1 || len(got) != 3 {
		t.Errorf("generators ran %d times and changed %q, want the files of all three packages", set.runs, got)
	}
}

func TestGenerateGivesStaleFilesBackToTheRelease(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	o := Options{Tree: tree, Base: released, Work: t.TempDir()}
	set := &fakeSet{}
	editPodSpec(t, tree)
	write(t, tree, map[string]string{"staging/src/k8s.io/api/rbac/v1/zz_generated.defaults.go": "package v1\n"})
	mustGenerate(t, o, set)
	git(t, tree, "checkout", "--quiet", "--", coreTypes)
	mustGenerate(t, o, set)
	if got := git(t, tree, "status", "--porcelain"); got != "" {
		t.Errorf("once the edit is undone, the tree differs from the release:\n%s", got)
	}
}

func TestGenerateLeavesFilesAloneThatAreTheSame(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	o := Options{Tree: tree, Base: released, Work: t.TempDir()}
	editPodSpec(t, tree)
	mustGenerate(t, o, &fakeSet{})
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	file := filepath.Join(tree, coreDeepCopy)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	mustGenerate(t, o, &fakeSet{})
	info, err := os.Stat(file)
	if err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the file was written again: %v, %v", info.ModTime(), err)
	}
}

func TestGenerateLeavesTheTreeAloneAfterAnError(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	editPodSpec(t, tree)
	failure := errors.New("no generator today")
	err := generate(t.Context(), Options{Tree: tree, Base: released, Work: t.TempDir()}, (&fakeSet{err: failure}).generate, nil)
	if !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	if got := git(t, tree, "diff", "--name-only"); got != coreTypes {
		t.Errorf("changed: %q, want the edit only", got)
	}
}

func editPodSpec(t *testing.T, tree string) {
	t.Helper()
	edited := replaceOnce(t, fakeRelease()[coreTypes], "Name string", "Name, Other string")
	write(t, tree, map[string]string{coreTypes: edited})
}

func replaceOnce(t *testing.T, text, old, replacement string) string {
	t.Helper()
	before, after, found := strings.Cut(text, old)
	if !found {
		t.Fatalf("%q is not in the source", old)
	}
	return before + replacement + after
}
