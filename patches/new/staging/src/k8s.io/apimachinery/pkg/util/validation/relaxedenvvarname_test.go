package validation

import (
	"regexp"
	"testing"
)

// TestIsRelaxedEnvVarName compares with KEP-4369's expression, for every byte
// alone, first, in the middle and last.
func TestIsRelaxedEnvVarName(t *testing.T) {
	valid := regexp.MustCompile("^[ -<>-~]+$")
	names := []string{"", "Logging:LogLevel:Default", "ü", "日本", "a=b", "a\n", "\na"}
	for b := 0; b < 256; b++ {
		c := string([]byte{byte(b)})
		names = append(names, c, c+"ab", "a"+c+"b", "ab"+c)
	}
	for _, name := range names {
		if want, got := valid.MatchString(name), len(IsRelaxedEnvVarName(name)) == 0; got != want {
			t.Errorf("%q: expected valid %t, got %t", name, want, got)
		}
	}
}
