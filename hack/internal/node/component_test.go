package node

import (
	"slices"
	"testing"
)

func TestWithoutChildren(t *testing.T) {
	for name, test := range map[string]struct {
		list string
		want []string
	}{
		"none":                               {"", nil},
		"one":                                {"8007 7990\n", []string{"8007"}},
		"one that is about to run a program": {"8413 8007\n8007 7990\n", []string{"8007"}},
		"two":                                {"8413 8400\n8007 7990\n", []string{"8007", "8413"}},
		"one that has ended":                 {"8413 \n8007 7990\n", []string{"8007"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := withoutChildren(test.list); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
