package pods

import (
	"maps"
	"testing"
)

func TestParseEnv(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want map[string]string // nil: an error
	}{
		"values keep what they have":    {`{"env":["A=b=c","E=","L=x\ny"]}`, map[string]string{"A": "b=c", "E": "", "L": "x\ny"}},
		"no variable at all":            {`{"env":[]}`, map[string]string{}},
		"two definitions of a variable": {`{"env":["A=1","A=2"]}`, nil},
		"an entry that is no variable":  {`{"env":["A"]}`, nil},
		"not what envdump prints":       {"sh: not found\n", nil},
		"nothing":                       {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseEnv(test.text)
			if (err != nil) != (test.want == nil) {
				t.Fatalf("error %v", err)
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
