package featuregates

import (
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// gateMetric shows the gates of a component: a gauge with the labels name and stage,
// which is 1 for a gate that is on. See k8s.io/component-base/metrics/prometheus/feature.
const gateMetric = "kubernetes_feature_enabled"

// Reported is what a running component says about one gate.
type Reported struct {
	// Stage is "ALPHA", "BETA", "DEPRECATED", or empty for GA.
	Stage   string
	Enabled bool
}

// OnFromMetrics is FromMetrics, with only whether each gate is on.
func OnFromMetrics(metrics io.Reader) (map[string]bool, error) {
	reported, err := FromMetrics(metrics)
	on := make(map[string]bool, len(reported))
	for name, gate := range reported {
		on[name] = gate.Enabled
	}
	return on, err
}

// FromMetrics reads the gates of a component, by name, from what it serves at /metrics.
// It returns an error where there are none: then it is no component of Kubernetes v1.26
// or later.
func FromMetrics(metrics io.Reader) (map[string]Reported, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	// The parser takes a text for cut short that does not end its last line, as the output
	// of a command that was trimmed.
	families, err := parser.TextToMetricFamilies(io.MultiReader(metrics, strings.NewReader("\n")))
	if err != nil {
		return nil, fmt.Errorf("reading the metric %s: %w", gateMetric, err)
	}
	gates := map[string]Reported{}
	for _, m := range families[gateMetric].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		// A family whose type is not declared is untyped.
		gates[labels["name"]] = Reported{Stage: labels["stage"], Enabled: m.GetGauge().GetValue()+m.GetUntyped().GetValue() == 1}
	}
	if len(gates) == 0 {
		return nil, fmt.Errorf("no metric %s: this is no Kubernetes component of v1.26 or later", gateMetric)
	}
	return gates, nil
}
