package codegen

import (
	"slices"
	"strings"
	"testing"
)

func TestFindEdits(t *testing.T) {
	const before = `// +k8s:deepcopy-gen=package

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Pod is a pod.
type Pod struct{ Meta metav1.ObjectMeta }

type Phase string

// +k8s:prerelease-lifecycle-gen:introduced=1.0
type Kind struct{ X int }

type (
	A int
	B int
)

func SetDefaults_Pod(p *Pod) { p.Meta = metav1.ObjectMeta{} }

func (p *Pod) DeepCopy() *Pod { return nil }
`
	tests := []struct {
		name             string
		old, replacement string
		edited, reshaped []string
	}{
		{name: "nothing", old: "package v1", replacement: "package v1"},
		{name: "the body of a function", old: "p.Meta = metav1.ObjectMeta{}", replacement: "p.Meta.Name = \"x\""},
		{name: "a field", old: "{ Meta", replacement: "{ X int; Meta", edited: []string{"Pod"}},
		{name: "a comment before a type", old: "is a pod", replacement: "is", edited: []string{"Pod"}},
		{name: "a type of a group", old: "B int", replacement: "B uint", edited: []string{"B"}, reshaped: []string{"B"}},
		{name: "a string that becomes a struct", old: "type Phase string", replacement: "type Phase struct{}", edited: []string{"Phase"}, reshaped: []string{"Phase"}},
		{name: "a type with a marker", old: "{ X int }", replacement: "{ X, Y int }", edited: []string{"Kind"}},
		{name: "a package's marker", old: "// +k8s:deepcopy-gen=package", replacement: ""},
		{name: "a new type", old: "type Phase string", replacement: "type Phase string\n\ntype New struct{}", edited: []string{"New"}},
		{name: "a type taken away", old: "type Phase string\n", replacement: "", edited: []string{"Phase"}, reshaped: []string{"Phase"}},
		{name: "a function's signature", old: "SetDefaults_Pod(p *Pod)", replacement: "SetDefaults_Pod(p *Pod, _ int)", edited: []string{"Pod"}},
		{name: "a new function", old: "type Phase string\n", replacement: "type Phase string\n\nfunc SetDefaults_A(a *A) {}\n", edited: []string{"A"}},
		{name: "a new function that no generator looks for", old: "type Phase string\n", replacement: "type Phase string\n\nfunc addKnownTypes(a *A) {}\n"},
		{name: "a method taken away", old: "func (p *Pod) DeepCopy() *Pod { return nil }", replacement: "", edited: []string{"Pod"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after := replaceOnce(t, before, tt.old, tt.replacement)
			found, err := findEdits("k8s.io/api/core/v1", []byte(before), []byte(after))
			if err != nil {
				t.Fatal(err)
			}
			if got := names(found.types); !slices.Equal(got, tt.edited) {
				t.Errorf("edited: %q, want %q", got, tt.edited)
			}
			if got := names(found.reshaped); !slices.Equal(got, tt.reshaped) {
				t.Errorf("reshaped: %q, want %q", got, tt.reshaped)
			}
		})
	}
}

func TestEditsOfAFileThatIsNew(t *testing.T) {
	found, err := findEdits("k8s.io/api/core/v1", nil, []byte("package v1\n\ntype New struct{}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names(found.types), []string{"New"}) || len(found.reshaped) > 0 {
		t.Errorf("edited %v, reshaped %v, want New as edited", found.types, found.reshaped)
	}
}

func TestEditsOfAFileThatIsNoGo(t *testing.T) {
	if _, err := findEdits("k8s.io/api/core/v1", nil, []byte("package v1\n\ntype New struct{\n")); err == nil {
		t.Error("no error")
	}
}

func names(types []typeName) []string {
	var names []string
	for _, n := range types {
		names = append(names, n.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func replaceOnce(t *testing.T, text, old, replacement string) string {
	t.Helper()
	before, after, found := strings.Cut(text, old)
	if !found {
		t.Fatalf("%q is not in the source", old)
	}
	return before + replacement + after
}
