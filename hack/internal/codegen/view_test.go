package codegen

import (
	"os"
	"strings"
	"testing"
)

func TestViewIsolatesTheTree(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	v, err := newView(tree, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := v.breakLinks("staging/src/k8s.io/api/core/v1"); err != nil {
		t.Fatal(err)
	}
	if err := v.remove(coreDeepCopy); err != nil {
		t.Fatal(err)
	}
	// In place, as generators write: with a link, the tree's file would change too.
	for _, file := range []string{coreTypes, coreDeepCopy} {
		if err := os.WriteFile(v.path(file), []byte("package v1\n\n// by a generator\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := (outputs{rbacTypes: []byte("package v1\n"), appsTypes: nil}).write(v.dir); err != nil {
		t.Fatal(err)
	}
	if got := git(t, tree, "status", "--porcelain"); got != "" {
		t.Errorf("work in the view changed the tree:\n%s", got)
	}
	made, err := v.collect(coreDeepCopy, appsTypes)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(made[coreDeepCopy]); !strings.Contains(got, "by a generator") {
		t.Errorf("collected %q, want what was written", got)
	}
	if data, ok := made[appsTypes]; data != nil || !ok {
		t.Errorf("collected %q, want a file that is gone", data)
	}
}

func TestViewKeepsAFileThatIsGeneratedTheSame(t *testing.T) {
	v, err := newView(fakeTree(t, fakeRelease()), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(v.path(rbacTypes))
	if err != nil {
		t.Fatal(err)
	}
	if err := (outputs{rbacTypes: []byte(read(t, v.dir, rbacTypes))}).write(v.dir); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(v.path(rbacTypes)); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was replaced (%v): for a moment, what is compiled in the view may miss it", err)
	}
}

func TestViewHasWhatGeneratorsRead(t *testing.T) {
	files := fakeRelease()
	seen := []string{coreTypes, "go.mod", "third_party/protobuf/google/a.proto", "staging/src/k8s.io/api/roundtrip_test.go"}
	hidden := []string{"test/e2e/a.go", "pkg/kubelet/kubelet_test.go", "pkg/kubelet/testdata/a.go", "pkg/kubelet/OWNERS", "README.md"}
	for _, file := range append(seen, hidden...) {
		files[file] = "package a\n"
	}
	v, err := newView(fakeTree(t, files), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range seen {
		if _, err := os.Stat(v.path(file)); err != nil {
			t.Error(err)
		}
	}
	for _, file := range append(hidden, ".git") {
		if _, err := os.Stat(v.path(file)); err == nil {
			t.Errorf("the view has %s, which no generator reads", file)
		}
	}
}

func TestCheckTagsNamesTheLineThatLacksItsTag(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	v, err := newView(tree, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packages := []*goPackage{{dir: "staging/src/k8s.io/api/rbac/v1"}}
	if err := v.checkTags(packages); err != nil {
		t.Fatalf("sources that the generator left alone: %v", err)
	}
	if err := (outputs{rbacTypes: []byte("package v1\n\ntype Role struct{} // tagged\n")}).write(v.dir); err != nil {
		t.Fatal(err)
	}
	err = v.checkTags(packages)
	if err == nil || !strings.Contains(err.Error(), rbacTypes+":3:") || !strings.Contains(err.Error(), "tagged") {
		t.Errorf("got %v, want an error that names line 3 of %s and its tagged form", err, rbacTypes)
	}
}
