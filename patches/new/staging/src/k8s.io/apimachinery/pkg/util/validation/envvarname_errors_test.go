package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The texts of the errors are part of what users and their tools know.
func TestErrorsOfEnvVarNames(t *testing.T) {
	const (
		strictText  = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"
		relaxedText = "a valid environment variable name must consist only of printable ASCII characters other than '='"
		emptyText   = "environment variable name must be non-empty"
	)
	testCases := []struct {
		name        string
		wantStrict  []string
		wantRelaxed []string
	}{
		{name: "MY_ENV.NAME-1"},
		{name: ".hidden"},
		{name: "", wantStrict: []string{strictText}, wantRelaxed: []string{emptyText}},
		{name: "1ST", wantStrict: []string{strictText}},
		{name: "Logging:LogLevel:Default", wantStrict: []string{strictText}},
		{name: ".", wantStrict: []string{"must not be '.'"}},
		{name: "..", wantStrict: []string{"must not be '..'"}},
		{name: "..a", wantStrict: []string{"must not start with '..'"}},
		{name: "..a b", wantStrict: []string{strictText, "must not start with '..'"}},
		{name: "A=B", wantStrict: []string{strictText}, wantRelaxed: []string{relaxedText}},
		{name: "A\n", wantStrict: []string{strictText}, wantRelaxed: []string{relaxedText}},
		{name: "=\x7f", wantStrict: []string{strictText}, wantRelaxed: []string{relaxedText}},
		{name: "Ä", wantStrict: []string{strictText}, wantRelaxed: []string{relaxedText}},
		{name: "\xff", wantStrict: []string{strictText}, wantRelaxed: []string{relaxedText}},
		{name: strings.Repeat("A", 1<<16)},
	}
	for _, tc := range testCases {
		t.Run(fmt.Sprintf("%.16q", tc.name), func(t *testing.T) {
			if got := IsEnvVarName(tc.name); !slices.Equal(got, tc.wantStrict) {
				t.Errorf("strict: want %q, got %q", tc.wantStrict, got)
			}
			if got := IsRelaxedEnvVarName(tc.name); !slices.Equal(got, tc.wantRelaxed) {
				t.Errorf("relaxed: want %q, got %q", tc.wantRelaxed, got)
			}
		})
	}
}
