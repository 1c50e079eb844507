package codegen

import (
	"slices"
	"testing"
)

func TestOpenAPIPackages(t *testing.T) {
	const (
		both  = "// +k8s:openapi-gen=true\n// +k8s:openapi-model-package=io.k8s.api.core.v1\n\npackage v1\n"
		model = "// +k8s:openapi-model-package=io.k8s.logs.v1\n\npackage v1\n"
		types = "package v1\n\ntype Pod struct{ Name string }\n"
	)
	tree := fakeTree(t, map[string]string{
		"staging/src/k8s.io/api/core/v1/doc.go":   both,
		"staging/src/k8s.io/api/core/v1/types.go": types,
		"staging/src/k8s.io/logs/v1/doc.go":       model,
		"staging/src/k8s.io/logs/v1/types.go":     types,
	})
	r := reachOf(t, Options{Tree: tree, Base: released, All: true})
	for modelNames, want := range map[bool][]string{
		false: {"k8s.io/api/core/v1"},
		true:  {"k8s.io/api/core/v1", "k8s.io/logs/v1"},
	} {
		p := &pipeline{minor: &minor{modelNames: modelNames}, reach: r}
		if got := importPaths(p.openAPIPackages(p.isAffected)); !slices.Equal(got, want) {
			t.Errorf("with modelNames %t openapi-gen reads %q, want %q", modelNames, got, want)
		}
	}
}
