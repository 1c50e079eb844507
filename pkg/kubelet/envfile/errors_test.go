package envfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorsAreTheSameByReason(t *testing.T) {
	wrapped := fmt.Errorf("context: %w", ErrInvalidSyntax.atLine(7, ruleNUL))
	if !errors.Is(wrapped, ErrInvalidSyntax) {
		t.Errorf("want %v to be ErrInvalidSyntax", wrapped)
	}
	if errors.Is(wrapped, ErrInvalidName) {
		t.Errorf("want %v not to be ErrInvalidName", wrapped)
	}
	if want := "context: line 7: must not contain a NUL byte"; wrapped.Error() != want {
		t.Errorf("want %q, got %q", want, wrapped)
	}
	if ErrInvalidSyntax.Line != 0 {
		t.Errorf("ErrInvalidSyntax has got a line: %d", ErrInvalidSyntax.Line)
	}
}

// What a workload wrote may be a secret: whatever is wrong with it, the error
// must not show a byte of it.
func TestErrorsShowNothingOfTheFile(t *testing.T) {
	const secret = "hunter2"
	files := map[string]string{
		"no declaration":      secret + "\n",
		"no name":             "=" + secret + "\n",
		"invalid name":        "9" + secret + "=1\n",
		"name too long":       strings.Repeat(secret, 100) + "=1\n",
		"value too long":      "A=" + strings.Repeat(secret, 10000) + "\n",
		"file too long":       strings.Repeat(secret, 10000),
		"join to nothing":     "A=" + secret + "\\\n",
		"join to a comment":   "A=1\\\n#" + secret + "\n",
		"NUL":                 secret + "\x00" + secret,
		"invalid UTF-8":       secret + "\xff" + secret,
		"byte order mark":     "\xEF\xBB\xBF" + secret,
		"key is not defined":  secret + "=" + secret + "\n",
		"every line is wrong": secret + "\n9" + secret + "=\n",
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			values, err := Parse([]byte(file), []string{"A"}, Options{})
			if err == nil {
				_, err = values.Lookup("A")
			}
			var known *Error
			if !errors.As(err, &known) {
				t.Fatalf("want an error of this package, got: %v", err)
			}
			if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, secret[:3]) {
				t.Errorf("the error shows what is in the file: %s", text)
			}
		})
	}
}

func TestErrorsNameTheRule(t *testing.T) {
	for _, tc := range []struct {
		syntax     Syntax
		file, want string
	}{
		{DotEnv, "A", "line 1: " + ruleNoEquals},
		{DotEnv, "A=1\n=1", "line 2: " + ruleNoName},
		{SingleQuoted, "A", "line 1: " + ruleQuotedNoEquals},
		{SingleQuoted, "A='1'\n='1'", "line 2: " + ruleNoName},
		{SingleQuoted, "A ='1'", "line 1: " + ruleQuotedSpace},
		{SingleQuoted, "A='1'='2'", "line 1: " + ruleAfterQuote},
	} {
		if _, err := Parse([]byte(tc.file), []string{"A"}, Options{Syntax: tc.syntax}); err == nil || err.Error() != tc.want {
			t.Errorf("%q: want %q, got %v", tc.file, tc.want, err)
		}
	}
}
