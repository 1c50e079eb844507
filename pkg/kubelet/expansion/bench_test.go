package expansion

import (
	"strings"
	"testing"

	forked "k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// BenchmarkExpand compares with the release's own expansion package, on the inputs
// of its tests, which are the document's, and on what most of env, command and args
// is: text without references.
func BenchmarkExpand(b *testing.B) {
	for _, bm := range []struct {
		name   string
		inputs []string
	}{
		{"document", documentInputs()},
		{"reference", []string{"$(VAR_A)"}},
		{"url", []string{"http://$(VAR_A):$(VAR_B)/$(VAR_C)"}},
		{"not_found", []string{"$(VAR_DNE)"}},
		{"escape", []string{"$$(VAR_A)"}},
		{"none_short", []string{"--verbose"}},
		{"none_line", []string{strings.Repeat("word ", 16)}},
		{"none_64KiB", []string{strings.Repeat("a line of a script\n", 64<<10/19)}},
		{"none_shell", []string{strings.Repeat("echo \"$HOME\" ${1} $? ", 8)}},
	} {
		for _, by := range []struct {
			name    string
			expand  func(string, func(string) string) string
			mapping func(string) string
		}{
			{"this", Expand, MappingFuncFor(nil, documentVariables)},
			{"released", forked.Expand, forked.MappingFuncFor(documentVariables)},
		} {
			b.Run(bm.name+"/"+by.name, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; i < b.N; i++ {
					for _, input := range bm.inputs {
						by.expand(input, by.mapping)
					}
				}
			})
		}
	}
}

func documentInputs() []string {
	inputs := make([]string, 0, len(documentExamples))
	for _, row := range documentExamples {
		inputs = append(inputs, row.input)
	}
	return inputs
}
