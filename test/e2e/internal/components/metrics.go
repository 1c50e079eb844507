// Package components reads the health, configuration and metrics of the components of a
// running cluster.
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

// APIServerMetrics is the path of the API server's metrics.
const APIServerMetrics = "/metrics"

// KubeletMetrics is the path under which the API server proxies the metrics of node's kubelet.
func KubeletMetrics(node string) string { return "/api/v1/nodes/" + node + "/proxy/metrics" }

// Metrics is one scrape of a component.
type Metrics struct {
	// Text is the whole response.
	Text    string
	samples model.Vector
}

// Scrape reads the metrics at path.
func Scrape(ctx context.Context, client kubernetes.Interface, path string) (Metrics, error) {
	text, err := get(ctx, client, path)
	if err != nil {
		return Metrics{}, err
	}
	return parse(string(text))
}

func get(ctx context.Context, client kubernetes.Interface, path string) ([]byte, error) {
	text, err := client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return text, nil
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

// Sum adds up the samples of the metric name that have all of labels. It is 0 if there are
// none: a counter has no sample for label values before their first increment.
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
