package components

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

const metrics = `# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="EnvFiles",stage="ALPHA"} 1
kubernetes_feature_enabled{name="EnvFilesToo",stage="ALPHA"} 0
kubernetes_feature_enabled{name="Graduated",stage=""} 1
other_metric{name="Elsewhere"} 1
`

func TestGate(t *testing.T) {
	for gate, want := range map[string]GateState{
		"EnvFiles":    GateOn,
		"EnvFilesToo": GateOff,
		"Graduated":   GateOn,
		"EnvFile":     GateUnknown,
		"Elsewhere":   GateUnknown,
	} {
		t.Run(gate, func(t *testing.T) {
			m, err := parse(metrics)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := m.gate(gate); got != want || err != nil {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
}

func TestGateNeedsTheMetricsOfAComponent(t *testing.T) {
	for _, text := range []string{"", "other_metric 1\n"} {
		m, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.gate("EnvFiles"); err == nil || !strings.Contains(err.Error(), "no metric kubernetes_feature_enabled") {
			t.Errorf("%q: want an error that says so, got %v", text, err)
		}
	}
}

func TestTakesPods(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1.NodeSpec
		want bool
	}{
		"a plain node":           {v1.NodeSpec{}, true},
		"a cordoned node":        {v1.NodeSpec{Unschedulable: true}, false},
		"a control plane's node": {v1.NodeSpec{Taints: []v1.Taint{{Effect: v1.TaintEffectNoSchedule}}}, false},
		"a node better avoided":  {v1.NodeSpec{Taints: []v1.Taint{{Effect: v1.TaintEffectPreferNoSchedule}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := TakesPods(v1.Node{Spec: test.spec}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
