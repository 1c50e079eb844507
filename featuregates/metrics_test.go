package featuregates

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFromMetrics(t *testing.T) {
	const declared = "# HELP kubernetes_feature_enabled [BETA] The stage and state of a feature.\n# TYPE kubernetes_feature_enabled gauge\n"
	const gates = `kubernetes_feature_enabled{name="EnvFiles",stage="ALPHA"} 1
kubernetes_feature_enabled{name="InPlacePodVerticalScaling",stage=""} 0
kubernetes_feature_enabled{stage="BETA",name="Reordered"} 1
kubernetes_feature_enabled_other{name="NotThis",stage="ALPHA"} 1
process_start_time_seconds 1.7e+09
`
	want := map[string]Reported{"EnvFiles": {"ALPHA", true}, "InPlacePodVerticalScaling": {"", false}, "Reordered": {"BETA", true}}
	for name, text := range map[string]string{
		"with its type": declared + gates, "without its type": gates, "without the end of its last line": strings.TrimSpace(gates),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FromMetrics(strings.NewReader(text))
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v, want less and got more:\n%s", err, diff)
			}
		})
	}
	for name, text := range map[string]string{"no gates": "up 1\n", "nothing": "", "a web page": "<html>"} {
		t.Run(name, func(t *testing.T) {
			if gates, err := FromMetrics(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), gateMetric) {
				t.Errorf("got %v and %v, want an error that names %s", gates, err, gateMetric)
			}
		})
	}
}
