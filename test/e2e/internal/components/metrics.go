// Package components reads the health, configuration and metrics of the components of a running cluster.
package components

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	nodeutil "k8s.io/kubernetes/pkg/util/node"
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

// KubeletConfig decodes the configuration that the kubelet of node runs with, a
// KubeletConfiguration of its own release, into the struct or map that into points to.
func KubeletConfig(ctx context.Context, client kubernetes.Interface, node string, into any) error {
	path := "/api/v1/nodes/" + node + "/proxy/configz"
	raw, err := get(ctx, client, path)
	if err != nil {
		return err
	}
	configz := struct{ KubeletConfig any }{into} // decoded into what the pointer points to
	if err := json.Unmarshal(raw, &configz); err != nil {
		return fmt.Errorf("reading the kubelet's configuration from %s: %w", path, err)
	}
	return nil
}

// KubeletStart returns when the process of node's kubelet started, in seconds since 1970. It
// identifies the process.
func KubeletStart(ctx context.Context, client kubernetes.Interface, node string) (float64, error) {
	const metric = "process_start_time_seconds"
	metrics, err := Scrape(ctx, client, KubeletMetrics(node))
	if err != nil {
		return 0, err
	}
	start := metrics.Sum(metric, nil)
	if start == 0 {
		return 0, fmt.Errorf("the kubelet of node %s has no metric %s", node, metric)
	}
	return start, nil
}

// KubeletHealth returns an error unless the kubelet of node reports that it is healthy, the node
// is Ready, and the kubelet's process is still the one that started at start.
func KubeletHealth(ctx context.Context, client kubernetes.Interface, node string, start float64) error {
	answer, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + node + "/proxy/healthz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("the kubelet of node %s is not healthy: %w: %s", node, err, answer)
	}
	if now, err := KubeletStart(ctx, client, node); err != nil {
		return err
	} else if now != start {
		return fmt.Errorf("the kubelet of node %s is not the process that it was: it was restarted", node)
	}
	object, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !nodeutil.IsNodeReady(object) {
		return fmt.Errorf("node %s is not ready: %v", node, object.Status.Conditions)
	}
	return nil
}
