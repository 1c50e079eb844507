// Package measure has what measurements on a cluster share.
package measure

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Metrics are those of the API server at one moment, by name.
type Metrics map[string]*dto.MetricFamily

// APIServer asks the API server for its metrics.
func APIServer(ctx context.Context, client kubernetes.Interface, want ...string) (Metrics, error) {
	body, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", string(expfmt.NewFormat(expfmt.TypeTextPlain))).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its metrics: %w", err)
	}
	defer body.Close()
	return Parse(body, want...)
}

// Parse reads metrics. It is an error if one of want is not among them.
func Parse(text io.Reader, want ...string) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	for _, name := range want {
		if families[name] == nil {
			return nil, fmt.Errorf("the API server's metrics do not have %s", name)
		}
	}
	return families, nil
}

// Value is that of a counter or gauge without labels.
func (m Metrics) Value(name string) float64 {
	metric := m[name].GetMetric()[0]
	return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
}

// Labels are those of a metric.
func Labels(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// Percentile is the smallest of took that p percent of them are not above.
func Percentile(took []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

// PodPresets is the resource of PodPresets.
var PodPresets = schema.GroupVersionResource{Group: "settings.k8s.io", Version: "v1alpha1", Resource: "podpresets"}

// CreatePresets makes count presets in a namespace. The first matching of them inject a variable, a volume
// and a mount each into pods with the label role=frontend.
func CreatePresets(ctx context.Context, client dynamic.Interface, namespace string, count, matching int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range count {
		role := fmt.Sprintf("other-%d", i)
		if i < matching {
			role = "frontend"
		}
		group.Go(func() error {
			volume := fmt.Sprintf("cache-%d", i)
			_, err := client.Resource(PodPresets).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": PodPresets.GroupVersion().String(), "kind": "PodPreset",
				"metadata": map[string]any{"name": fmt.Sprintf("preset-%d", i)},
				"spec": map[string]any{
					"selector":     map[string]any{"matchLabels": map[string]any{"role": role}},
					"env":          []any{map[string]any{"name": fmt.Sprintf("DB_PORT_%d", i), "value": "6379"}},
					"volumes":      []any{map[string]any{"name": volume, "emptyDir": map[string]any{}}},
					"volumeMounts": []any{map[string]any{"name": volume, "mountPath": "/" + volume}},
				},
			}}, metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// Write writes results, and makes their folder if it is not there. Without a file it does nothing.
func Write(file, text string) error {
	if file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
