package scale

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// metrics are those of the API server at one moment.
type metrics map[string]*dto.MetricFamily

func (b *bench) metrics() metrics {
	b.Helper()
	body, err := b.client.CoreV1().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", string(expfmt.NewFormat(expfmt.TypeTextPlain))).Stream(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		b.Fatal(err)
	}
	for _, want := range []string{cpu, memory, admission} {
		if families[want] == nil {
			b.Fatalf("the API server's metrics do not have %s", want)
		}
	}
	return families
}

const (
	cpu       = "process_cpu_seconds_total"
	memory    = "process_resident_memory_bytes"
	admission = "apiserver_admission_controller_admission_duration_seconds"
)

// value is that of a metric without labels.
func (m metrics) value(name string) float64 {
	metric := m[name].GetMetric()[0]
	return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
}

// admissionOfCreations is how many seconds mutating admission plugins, webhooks aside, took for creations.
func (m metrics) admissionOfCreations() (seconds float64) {
	for _, metric := range m[admission].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if labels["operation"] == "CREATE" && labels["type"] == "admit" {
			seconds += metric.GetHistogram().GetSampleSum()
		}
	}
	return seconds
}

// measured is what one run cost the API server, per pod but for its memory.
type measured struct {
	cpu, admission, p50, p99 time.Duration
	memory, stored           float64 // bytes
}

func (m measured) String() string {
	return fmt.Sprintf("%d cpu-ns/op %d admission-ns/op %d p50-ns/op %d p99-ns/op %.0f stored-B/op %.0f RSS-B",
		m.cpu, m.admission, m.p50, m.p99, m.stored, m.memory)
}

// measure is what has been used since before, in which pods were created.
func (b *bench) measure(before metrics, took []time.Duration, namespace string) measured {
	b.Helper()
	after := b.metrics()
	each := func(seconds float64) time.Duration {
		return time.Duration(seconds / float64(len(took)) * float64(time.Second))
	}
	list, err := b.client.CoreV1().Pods(namespace).List(b.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) == 0 {
		b.Fatalf("no pod to weigh: %v", err)
	}
	// In etcd pods are protobuf.
	stored, err := b.client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Name(list.Items[0].Name).SetHeader("Accept", runtime.ContentTypeProtobuf).DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return measured{
		cpu: each(after.value(cpu) - before.value(cpu)), admission: each(after.admissionOfCreations() - before.admissionOfCreations()),
		p50: percentile(took, 50), p99: percentile(took, 99), memory: after.value(memory), stored: float64(len(stored)),
	}
}

// percentile is the smallest of took that p percent of them are not above.
func percentile(took []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[max(0, int(math.Ceil(float64(len(sorted))*p/100))-1)]
}

func TestPercentile(t *testing.T) {
	var took []time.Duration
	for i := 100; i > 0; i-- {
		took = append(took, time.Duration(i))
	}
	for p, want := range map[float64]time.Duration{0: 1, 50: 50, 99: 99, 100: 100} {
		if got := percentile(took, p); got != want {
			t.Errorf("percentile %v: %d, want %d", p, got, want)
		}
	}
}
