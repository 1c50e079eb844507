package examples

import (
	"slices"
	"strings"
	"testing"

	"podenv.dev/featuregates"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		want []string // nil: an error
	}{
		"what envdump prints":    {`{"env":["A=1","B=x y"]}` + "\n", []string{"A=1", "B=x y"}},
		"what env prints":        {"A=1\nB=x y\n", []string{"A=1", "B=x y"}},
		"a document that is cut": {`{"env":["A=1`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(test.log)
			if (err != nil) != (test.want == nil) {
				t.Fatalf("error %v", err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		env  []string
		want bool
	}{
		"the variable is set":    {[]string{"PATH=/", "A=1"}, true},
		"the variable is absent": {[]string{"PATH=/", "AB=1"}, false},
		"the variable is set to nothing, as a kubelet does that ignores the field": {[]string{"A="}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := Result{Example: featuregates.Example{Sets: []string{"A"}}, Env: test.env}.check()
			if (err == nil) != test.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	var out strings.Builder
	Print(&out, []Result{{
		Example: featuregates.Example{Pod: "story-1.yaml", Sets: []string{"CONFIG_VAR"}, From: "the env file"}, Container: "use-envfile", Image: "podenv.dev/envdump:1", Env: []string{"PATH=/", "CONFIG_VAR=HELLO"},
	}})
	want := `story-1: container use-envfile (podenv.dev/envdump:1) saw
    CONFIG_VAR=HELLO    <- from the env file
    PATH=/
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
