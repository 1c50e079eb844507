package gates

import (
	"errors"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	have := map[string]bool{"On": true, "Off": false}
	tests := map[string]struct {
		want  map[string]bool
		error string
	}{
		"all as wanted":           {map[string]bool{"On": true, "Off": false}, ""},
		"one that should be on":   {map[string]bool{"On": true, "Off": true}, "kubelet runs with Off=false, want Off=true,On=true"},
		"one that should be off":  {map[string]bool{"On": false}, "On=true"},
		"one that nobody knows":   {map[string]bool{"Unknown": true}, "Unknown is unknown"},
		"one unknown wanted off":  {map[string]bool{"Unknown": false}, "Unknown is unknown"},
		"nothing wanted is right": {nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Compare("kubelet", test.want, have)
			if (err == nil) != (test.error == "") || err != nil && !strings.Contains(err.Error(), test.error) {
				t.Errorf("error %v, want %q", err, test.error)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	tests := map[string]string{
		`err="failed to set feature gates from initial flags-based config: unrecognized feature gate: EnvFilez"`: "unrecognized feature gate: EnvFilez",
		`err="cannot set feature gate KubeletTracing to false, feature is locked to true"`:                       "cannot set feature gate KubeletTracing to false, feature is locked to true",
		`err="failed to load kubelet config file, path: /nonexistent"`:                                           "",
	}
	for says, want := range tests {
		if got := Refusal(errors.New(says)); got != want {
			t.Errorf("Refusal(%s) = %q, want %q", says, got, want)
		}
	}
	if got := Refusal(nil); got != "" {
		t.Errorf("Refusal(nil) = %q", got)
	}
}
