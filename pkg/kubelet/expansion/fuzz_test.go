package expansion

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	forked "k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// FuzzExpand shows that what a container gets does not depend on this package: the
// results are those of the release's own expansion package, on every input, with
// and without a collection of what is left unexpanded. Both ask for the same names
// in the same order, and the collection has those that were not found and can be names.
func FuzzExpand(f *testing.F) {
	for _, row := range documentExamples {
		f.Add(row.input, "VAR_A", "value $(VAR_B) $$")
	}
	for _, input := range []string{"", "$", "$()", "\n", "$£", "$\xff$(A)", "$(\xff)", "$$€$€", "$(A)$(B)$(A)", "$(VAR_A $$ $("} {
		f.Add(input, "A", "$(B")
	}
	f.Fuzz(func(t *testing.T, input, name, value string) {
		container, services := map[string]string{name: value}, documentVariables
		released := forked.MappingFuncFor(container, services)
		var want, got []string
		wantResult := forked.Expand(input, func(name string) string {
			want = append(want, name)
			return released(name)
		})

		if len(wantResult) > MaxString {
			t.Skip("no process can be given that")
		}
		if result := Expand(input, MappingFuncFor(nil, container, services)); result != wantResult {
			t.Fatalf("gate off: %q: want %q, got %q", input, wantResult, result)
		}
		references := NewUnexpandedReferences("app", nil)
		mapping := MappingFuncFor(references.InArgs(), container, services)
		result := Expand(input, func(name string) string {
			got = append(got, name)
			return mapping(name)
		})
		if result != wantResult {
			t.Fatalf("gate on: %q: want %q, got %q", input, wantResult, result)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: want look-ups of %q, got %q", input, want, got)
		}
		checkCollected(t, references, want, container, services)
	})
}

func checkCollected(t *testing.T, references *UnexpandedReferences, names []string, contexts ...map[string]string) {
	missing := map[string]bool{}
	for _, name := range names {
		found := false
		for _, context := range contexts {
			_, ok := context[name]
			found = found || ok
		}
		if !found && len(validation.IsRelaxedEnvVarName(name)) == 0 {
			missing[name] = true
		}
	}
	if len(references.found) != len(missing) {
		t.Fatalf("want %d names collected, got %d", len(missing), len(references.found))
	}
	for _, found := range references.found {
		if !missing[found.name] {
			t.Fatalf("%q was found, but is collected", found.name)
		}
	}
}
