package verify

import "testing"

func TestIsSuite(t *testing.T) {
	for pkg, want := range map[string]bool{
		"podenv.dev/test/e2e/envfiles":       true,
		"podenv.dev/test/e2e/internal/suite": false,
		"podenv.dev/test/corpus":             false,
		"podenv.dev/hack/internal/suite":     false,
	} {
		if got := isSuite(pkg); got != want {
			t.Errorf("isSuite(%q) = %t, want %t", pkg, got, want)
		}
	}
}
