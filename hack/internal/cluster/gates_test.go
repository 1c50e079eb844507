package cluster

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestParseGates(t *testing.T) {
	const metrics = `# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="EnvFiles",stage="ALPHA"} 1
kubernetes_feature_enabled{name="InPlacePodVerticalScaling",stage=""} 0
kubernetes_feature_enabled{stage="BETA",name="Reordered"} 1
kubernetes_feature_enabled_other{name="NotThis",stage="ALPHA"} 1
process_start_time_seconds 1.7e+09
`
	got, err := parseGates(strings.NewReader(metrics))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"EnvFiles": true, "InPlacePodVerticalScaling": false, "Reordered": true}
	if !maps.Equal(got, want) {
		t.Errorf("gates %v, want %v", got, want)
	}
	if _, err := parseGates(strings.NewReader("up 1\n")); err == nil {
		t.Error("metrics without gates are taken for gates that are all off")
	}
}

func TestCompareGates(t *testing.T) {
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
			err := compareGates("kubelet", test.want, have)
			if (err == nil) != (test.error == "") || err != nil && !strings.Contains(err.Error(), test.error) {
				t.Errorf("error %v, want %q", err, test.error)
			}
		})
	}
}

func TestGateRefusal(t *testing.T) {
	tests := map[string]string{
		`err="failed to set feature gates from initial flags-based config: unrecognized feature gate: EnvFilez"`: "unrecognized feature gate: EnvFilez",
		`err="cannot set feature gate KubeletTracing to false, feature is locked to true"`:                       "cannot set feature gate KubeletTracing to false, feature is locked to true",
		`err="failed to load kubelet config file, path: /nonexistent"`:                                           "",
	}
	for says, want := range tests {
		if got := gateRefusal(errors.New(says)); got != want {
			t.Errorf("gateRefusal(%s) = %q, want %q", says, got, want)
		}
	}
	if got := gateRefusal(nil); got != "" {
		t.Errorf("gateRefusal(nil) = %q", got)
	}
}
