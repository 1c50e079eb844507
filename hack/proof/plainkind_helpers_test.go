package proof

import "testing"

func TestSameAddressKnowsBothSpellings(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"10.244.0.5", "10.244.0.5", true},
		{"[::ffff:10.244.0.5]", "10.244.0.5", true},
		{"[fd00::1]", "fd00::1", true},
		{"10.244.0.5", "10.244.0.6", false},
		{"", "10.244.0.6", false},
	} {
		if got := sameAddress(tc.a, tc.b); got != tc.want {
			t.Errorf("sameAddress(%q, %q) = %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
}
