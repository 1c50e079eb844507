package env

import (
	"strings"
	"testing"
)

func TestParseEnvFromStdinWithHashes(t *testing.T) {
	testCases := []struct {
		name, stdin, want string // want is NAME=VALUE, with ; in between
	}{
		{name: "a comment", stdin: "# A=1\n  #B=2\nC=3\n", want: "C=3"},
		{name: "a name with a hash", stdin: "A#B=1\nC # D=2\n", want: "A#B=1;C # D=2"},
		{name: "a comment after a value", stdin: "A=1#comment\n", want: "A=1"},
		{name: "no variable", stdin: "A # comment\n", want: ""},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			env, _, _, err := ParseEnv([]string{"-"}, strings.NewReader(tc.stdin))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range env {
				got = append(got, e.Name+"="+e.Value)
			}
			if strings.Join(got, ";") != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
