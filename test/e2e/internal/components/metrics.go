// Package components asks the components of a running cluster about themselves:
// health, configuration, metrics.
package components

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// APIServerMetrics is where the API server that answers serves its metrics.
const APIServerMetrics = "/metrics"

// KubeletMetrics is where the API server hands through the metrics of node's kubelet.
func KubeletMetrics(node string) string { return "/api/v1/nodes/" + node + "/proxy/metrics" }

// Metrics are what a component served at one time.
type Metrics struct {
	// Text is the whole answer.
	Text    string
	samples model.Vector
}

// Scrape reads the metrics at path.
func Scrape(ctx context.Context, client kubernetes.Interface, path string) (Metrics, error) {
	text, err := client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return Metrics{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return parse(string(text))
}

func parse(text string) (Metrics, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return Metrics{}, err
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	return Metrics{Text: text, samples: samples}, err
}

// Sum adds up the samples of the metric called name that have all of labels. It is 0
// where there is none: a counter's label values have no sample before the first count.
func (m Metrics) Sum(name string, labels map[string]string) float64 {
	sum := 0.0
	for _, sample := range m.samples {
		matches := string(sample.Metric[model.MetricNameLabel]) == name
		for label, value := range labels {
			matches = matches && string(sample.Metric[model.LabelName(label)]) == value
		}
		if matches {
			sum += float64(sample.Value)
		}
	}
	return sum
}
