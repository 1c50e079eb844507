package codegen

import (
	"strings"
	"testing"
)

func TestInputsKey(t *testing.T) {
	pod := fakeRelease()[coreTypes]
	tests := []struct {
		name    string
		edit    map[string]string
		changes bool
	}{
		{"no edit", nil, false},
		{"a new field in an API type", map[string]string{coreTypes: strings.Replace(pod, "Name string", "Name, Other string", 1)}, true},
		{"a comment on an API type", map[string]string{coreTypes: strings.Replace(pod, "type Node", "// Node is a node.\ntype Node", 1)}, true},
		{"a new file in an API package", map[string]string{"staging/src/k8s.io/api/core/v1/more.go": "package v1\n"}, true},
		{"an API package that is new", map[string]string{"pkg/apis/new/doc.go": "// +k8s:deepcopy-gen=package\n\npackage new\n"}, true},
		{"a file of an API package taken away", map[string]string{rbacTypes: ""}, true},
		{"the markers of an API package taken away", map[string]string{"staging/src/k8s.io/api/rbac/v1/doc.go": "package v1\n"}, true},
		{"the licence header of generated files", map[string]string{boilerplate: "// new\n"}, true},
		{"a generator", map[string]string{"staging/src/k8s.io/code-generator/cmd/deepcopy-gen/main.go": "package main\n"}, true},
		{"what an API server serves", map[string]string{"pkg/registry/rbac/rest/storage_rbac.go": "package rest\n"}, true},
		{"how a resource behaves", map[string]string{"pkg/registry/rbac/role/strategy.go": "package role\n"}, false},
		{"the kubelet", map[string]string{kubelet: "package kubelet\n\nfunc run() { println() }\n"}, false},
		{"a test in an API package", map[string]string{"staging/src/k8s.io/api/core/v1/types_test.go": "package v1\n"}, false},
		{"a generated file", map[string]string{"staging/src/k8s.io/api/core/v1/zz_generated.deepcopy.go": "package v1\n"}, false},
		{"a file that is no Go", map[string]string{"staging/src/k8s.io/api/core/v1/README.md": "# v1\n"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := fakeTree(t, fakeRelease())
			o := Options{Tree: tree, Base: released, Release: "v1.33.13"}
			before := mustKey(t, o)
			write(t, tree, tt.edit)
			uncommitted := mustKey(t, o)
			if (uncommitted != before) != tt.changes {
				t.Errorf("key changed: %t, want %t", uncommitted != before, tt.changes)
			}
			if len(tt.edit) == 0 {
				return
			}
			commit(t, tree, "edit")
			if committed := mustKey(t, o); committed != uncommitted {
				t.Error("the commit of an edit changed the key")
			}
		})
	}
}

func TestInputsKeyDiffersBetweenReleases(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	if mustKey(t, Options{Tree: tree, Base: released, Release: "v1.33.13"}) == mustKey(t, Options{Tree: tree, Base: released, Release: "v1.32.13"}) {
		t.Error("two releases have the same key")
	}
}

func TestInputsKeyCountsFromTheGivenBase(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	write(t, tree, map[string]string{rbacTypes: "package v1\n\ntype Role struct{ Rules int }\n"})
	commit(t, tree, "release of another kind")
	stock := mustKey(t, Options{Tree: fakeTree(t, fakeRelease()), Base: released})
	if got := mustKey(t, Options{Tree: tree, Base: git(t, tree, "rev-parse", "HEAD")}); got != stock {
		t.Error("what the base has counts as a change")
	}
	if got := mustKey(t, Options{Tree: tree, Base: released}); got == stock {
		t.Error("what follows the base does not count as a change")
	}
}

func TestInputsKeyInAHookOfAnotherRepository(t *testing.T) {
	o := Options{Tree: fakeTree(t, fakeRelease()), Base: released}
	want := mustKey(t, o)
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(name, t.TempDir())
	}
	if got := mustKey(t, o); got != want {
		t.Error("the environment of the hook changed the key")
	}
}

func mustKey(t *testing.T, o Options) string {
	t.Helper()
	key, err := InputsKey(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestInputsKeyOfAFolderThatIsNoTree(t *testing.T) {
	_, err := InputsKey(t.Context(), Options{Tree: t.TempDir(), Base: released})
	if err == nil || !strings.Contains(err.Error(), "podenv tree") {
		t.Errorf("got %v, want an error that says to run `podenv tree`", err)
	}
}
