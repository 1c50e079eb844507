package audit

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestStrictIsTheAPIServersRule holds strict to upstream's validation, for every byte
// at every place of a name.
func TestStrictIsTheAPIServersRule(t *testing.T) {
	names := []string{"", ".", "..", "...", "..a", ".a", "a..", "Logging:LogLevel:Default", "A B", "1A", "A1"}
	for b := range 256 {
		c := string([]byte{byte(b)})
		names = append(names, c, c+"A", "A"+c+"A", "A"+c, "."+c, c+".")
	}
	for _, name := range names {
		if got, want := strict(name), len(validation.IsEnvVarName(name)) == 0; got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
