package scale

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podenv.dev/test/bench/measure"
)

func (b *bench) metrics() measure.Metrics {
	b.Helper()
	metrics, err := measure.APIServer(b.Context(), b.client, cpu, memory, admission)
	if err != nil {
		b.Fatal(err)
	}
	return metrics
}

const (
	cpu       = "process_cpu_seconds_total"
	memory    = "process_resident_memory_bytes"
	admission = "apiserver_admission_controller_admission_duration_seconds"
)

// admissionOfCreations is how many seconds the admission plugins, webhooks aside, took for creations.
func admissionOfCreations(m measure.Metrics) (seconds float64) {
	for _, metric := range m[admission].GetMetric() {
		if measure.Labels(metric)["operation"] == "CREATE" {
			seconds += metric.GetHistogram().GetSampleSum()
		}
	}
	return seconds
}

// measured is what one run cost the API server, per pod but for its memory.
type measured struct {
	cpu, admission, p50, p99 time.Duration
	memory, stored           float64 // bytes
	added                    float64 // percent of cpu that is that of files which the patches add
}

func (m measured) String() string {
	return fmt.Sprintf("%d cpu-ns/op %d admission-ns/op %d p50-ns/op %d p99-ns/op %.0f stored-B/op %.0f RSS-B %.3f added-%%CPU",
		m.cpu, m.admission, m.p50, m.p99, m.stored, m.memory, m.added)
}

// measure is what has been used since before, in which pods were created.
func (b *bench) measure(before measure.Metrics, took []time.Duration, namespace string) measured {
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
		cpu: each(after.Value(cpu) - before.Value(cpu)), admission: each(admissionOfCreations(after) - admissionOfCreations(before)),
		p50: measure.Percentile(took, 50), p99: measure.Percentile(took, 99), memory: after.Value(memory), stored: float64(len(stored)),
	}
}
