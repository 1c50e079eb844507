package codegen

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// definitionsOf is a file as openapi-gen writes it, of the given Go types.
func definitionsOf(imports string, types ...string) string {
	var list, functions strings.Builder
	width := 0
	for _, definition := range types {
		goType, _, _ := strings.Cut(definition, "=")
		width = max(width, len(goType))
	}
	for _, definition := range types {
		goType, value, _ := strings.Cut(definition, "=")
		name := "schema_" + strings.NewReplacer("/", "_", ".", "_").Replace(goType)
		fmt.Fprintf(&list, "\t\t%q:%s%s(ref),\n", goType, strings.Repeat(" ", width-len(goType)+1), name)
		fmt.Fprintf(&functions, "\nfunc %s(ref common.ReferenceCallback) common.OpenAPIDefinition {\n\treturn %s // as it is\n}\n", name, value)
	}
	return "// header\n\npackage openapi\n\nimport (\n" + imports + ")\n\n" +
		"func GetOpenAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {\n" +
		"\treturn map[string]common.OpenAPIDefinition{\n" + list.String() + "\t}\n}\n" + functions.String()
}

const (
	importCommon = "\tcommon \"k8s.io/kube-openapi/pkg/common\"\n"
	importCore   = "\tcorev1 \"k8s.io/api/core/v1\"\n"
	importAsV1   = "\tv1 \"k8s.io/api/core/v1\"\n"
)

func isCore(pkg string) bool { return pkg == "k8s.io/api/core/v1" }

func TestMergeDefinitions(t *testing.T) {
	all := definitionsOf(importCore+importCommon,
		"k8s.io/api/apps/v1.Deployment=common.Of(corev1.Pod{})",
		"k8s.io/api/core/v1.Gone=common.Of(corev1.Gone{})",
		"k8s.io/api/core/v1.Pod=common.Of(corev1.Pod{})",
		"k8s.io/api/rbac/v1.Role=common.Of(0)")
	tests := []struct{ name, part, want string }{
		{
			name: "a type added, one edited and one taken away",
			part: definitionsOf(importCore+importCommon,
				"k8s.io/api/core/v1.FileKeySelector=common.Of(corev1.FileKeySelector{})",
				"k8s.io/api/core/v1.Pod=common.Of(corev1.Pod{}, 2)"),
			want: definitionsOf(importCore+importCommon,
				"k8s.io/api/apps/v1.Deployment=common.Of(corev1.Pod{})",
				"k8s.io/api/core/v1.FileKeySelector=common.Of(corev1.FileKeySelector{})",
				"k8s.io/api/core/v1.Pod=common.Of(corev1.Pod{}, 2)",
				"k8s.io/api/rbac/v1.Role=common.Of(0)"),
		},
		{
			name: "an import that has another name in the part",
			part: definitionsOf(importCommon+importAsV1, "k8s.io/api/core/v1.Pod=common.Of(v1.Pod{}, v1.Node{})"),
			want: definitionsOf(importCore+importCommon,
				"k8s.io/api/apps/v1.Deployment=common.Of(corev1.Pod{})",
				"k8s.io/api/core/v1.Pod=common.Of(corev1.Pod{}, corev1.Node{})",
				"k8s.io/api/rbac/v1.Role=common.Of(0)"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mergeDefinitions([]byte(all), []byte(tt.part), isCore)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestMergeDefinitionsRefusesWhatNeedsThemAll(t *testing.T) {
	all := definitionsOf(importCore+importCommon, "k8s.io/api/core/v1.Pod=common.Of(corev1.Pod{})")
	tests := []struct{ name, all, part string }{
		{"no file to merge into", "", all},
		{"a file of another form", "package openapi\n\nfunc GetOpenAPIDefinitions() {}\n", all},
		{"an import that the file has not", all, definitionsOf(importCommon+"\tnew \"k8s.io/new\"\n", "k8s.io/api/core/v1.Pod=common.Of(new.Pod{})")},
		{"an import that nothing uses any more", all, definitionsOf(importCommon, "k8s.io/api/core/v1.Pod=common.Of(0)")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := mergeDefinitions([]byte(tt.all), []byte(tt.part), isCore); !errors.Is(err, errNotMerged) {
				t.Errorf("got %v, want errNotMerged", err)
			}
		})
	}
}
