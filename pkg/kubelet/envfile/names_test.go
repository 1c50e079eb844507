package envfile

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The API server decides with apimachinery which names a container's variables
// may have: the names in a file follow the same two rules.
func TestValidNameIsTheRuleForAPIDefinedNames(t *testing.T) {
	valid := func(name string, relaxed bool) bool {
		return nameBytes([]byte(name), relaxed) == len(name) && validName([]byte(name), relaxed)
	}
	check := func(name string) {
		if want, got := len(validation.IsEnvVarName(name)) == 0, valid(name, false); got != want {
			t.Errorf("strict, %q: want %v, got %v", name, want, got)
		}
		if want, got := len(validation.IsRelaxedEnvVarName(name)) == 0, valid(name, true); got != want {
			t.Errorf("relaxed, %q: want %v, got %v", name, want, got)
		}
	}
	check("")
	for a := 0; a < 256; a++ {
		check(string([]byte{byte(a)}))
		for b := 0; b < 256; b++ {
			check(string([]byte{byte(a), byte(b)}))
		}
	}
	for _, name := range []string{"...", "..a", ".a.", "a..", "-.", "_.._", "A-b.C_9", "a=b", "a b", "ab\n", "Ä", "日本"} {
		check(name)
	}
}
