package gate

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"podenv.dev/hack/internal/progress"
)

// Cost is a measure of the components in rounds with the gate off and on. Before the first round of
// each, those that know the gate had started anew.
type Cost struct {
	What string    `json:"what"` // with the unit
	Off  []float64 `json:"off"`
	On   []float64 `json:"on"`
}

const (
	rounds       = 3
	podsPerRound = 10
)

// processorTime is Cost.What of the processor time of a component.
const processorTime = "processor time of %s per pod, in s"

// measure adds what pods cost, and compares metrics when the gate is on.
func (w *Walker) measure(ctx context.Context, on bool, step *progress.Step) error {
	if err := w.addCosts(ctx, on, step); err != nil {
		return err
	}
	metrics, err := w.metrics(ctx)
	if err != nil || !on {
		w.off = metrics
		return err
	}
	w.Walk.Metrics = onlyOn(w.first, w.off, metrics)
	return nil
}

// addCosts creates pods like one of the specs' on the last worker and deletes them, in some rounds, and
// adds what that cost. If a pod of the specs is refused with the gate off, they have its first image alone. Without
// a pod, or if it does not start, there are no costs.
func (w *Walker) addCosts(ctx context.Context, on bool, step *progress.Step) error {
	at := slices.IndexFunc(w.stored, func(s stored) bool { return s.resource.Resource == "pods" && s.resource.Group == "" })
	if at < 0 || on && w.Walk.Costs == nil {
		return nil
	}
	pod := w.stored[at].probe
	client := pod.client(w.objects, namespace)
	if w.Walk.plain() {
		pod.object = pod.plain()
	}
	for round := range rounds {
		step.Now("round %d of %d", round+1, rounds)
		before, err := w.scrape(ctx)
		if err != nil {
			return err
		}
		var names []string
		for i := range podsPerRound {
			object := pod.named(namespace, fmt.Sprintf("cost-%t-%d-%d", on, round, i))
			if err := unstructured.SetNestedField(object.Object, w.worker(), "spec", "nodeSelector", v1.LabelHostname); err != nil {
				return err
			}
			if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
				break
			}
			names = append(names, object.GetName())
		}
		ran, err := w.settled(ctx, "cost-")
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := client.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
				return err
			}
		}
		after, err := w.scrape(ctx)
		if err != nil || !ran || len(names) < podsPerRound {
			w.Walk.Costs = nil
			return err
		}
		perPod := func(component, metric string) float64 {
			return (sum(after[component][metric]) - sum(before[component][metric])) / podsPerRound
		}
		w.Walk.addCost("requests to the API server per pod", on, perPod("kube-apiserver", "apiserver_request_total"))
		for _, component := range slices.Sorted(maps.Keys(after)) {
			w.Walk.addCost(fmt.Sprintf(processorTime, component), on, perPod(component, "process_cpu_seconds_total"))
			w.Walk.addCost("resident memory of "+component+", in MiB", on, sum(after[component]["process_resident_memory_bytes"])/(1<<20))
		}
	}
	return nil
}

// plain reports whether costs are of pods that do not use the gate: an API server with the gate off refuses others.
func (w *Walk) plain() bool {
	return slices.ContainsFunc(w.Refused, func(reason string) bool { return strings.HasPrefix(reason, "Pod: ") })
}

// addCost adds the value of a round.
func (w *Walk) addCost(what string, on bool, value float64) {
	at := slices.IndexFunc(w.Costs, func(c Cost) bool { return c.What == what })
	if at < 0 {
		at = len(w.Costs)
		w.Costs = append(w.Costs, Cost{What: what})
	}
	values := &w.Costs[at].Off
	if on {
		values = &w.Costs[at].On
	}
	*values = append(*values, value)
}

func sum(family *dto.MetricFamily) (total float64) {
	for _, m := range family.GetMetric() {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return total
}

// metrics returns the names of the metrics of the control plane and of a kubelet, as COMPONENT: NAME.
func (w *Walker) metrics(ctx context.Context) (names []string, err error) {
	served, err := w.scrape(ctx)
	for component, families := range served {
		for name := range families {
			names = append(names, component+": "+name)
		}
	}
	slices.Sort(names)
	return names, err
}

// scrape returns the metrics of the control plane's components and of the last worker's kubelet.
func (w *Walker) scrape(ctx context.Context) (map[string]map[string]*dto.MetricFamily, error) {
	served := map[string]map[string]*dto.MetricFamily{}
	at := w.controlPlane()
	for component, on := range map[string]string{"kubelet": w.worker(), "kube-apiserver": at, "kube-controller-manager": at, "kube-scheduler": at} {
		text, err := w.read(ctx, w.Cluster, w.client, on, component)
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", component, err)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		if served[component], err = parser.TextToMetricFamilies(bytes.NewReader(text)); err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", component, err)
		}
	}
	return served, nil
}

func (w *Walker) worker() string { return w.nodes[len(w.nodes)-1].Name }
