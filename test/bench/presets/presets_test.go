// Package presets measures, on a cluster, what PodPresets cost the API server: how long the
// creation of a pod takes in a namespace with presets beside one without, and the memory of
// many presets. `make bench-cluster` runs it.
package presets

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"podenv.dev/test/bench/measure"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "the cluster; without it nothing is measured")
	podCount   = flag.Int("pods", 1000, "how many pods are created without presets, and with them")
	many       = flag.Int("presets", 10_000, "of how many presets the memory is measured")
	results    = flag.String("results", "", "the file for the results in the Go benchmark format")
)

const (
	inNamespace = 100 // presets of the namespace that has them
	matching    = 3   // of them
)

// bench is a cluster that is measured.
type bench struct {
	*testing.T
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

func TestPresets(t *testing.T) {
	if *kubeconfig == "" {
		t.Skip("without -kubeconfig: make bench-cluster gives one")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // so that the client does not wait
	b := &bench{T: t, client: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config)}
	if _, err := b.client.Discovery().ServerResourcesForGroupVersion(measure.PodPresets.GroupVersion().String()); err != nil {
		t.Skipf("the cluster does not serve presets: %v", err)
	}
	without, with := b.latencies()
	memory := b.memory()

	var table, lines strings.Builder
	fmt.Fprintf(&table, "creation of %d pods           p50        p99\n", *podCount)
	for _, row := range []struct {
		name, by string
		took     []time.Duration
	}{
		{"without presets", "without", without},
		{fmt.Sprintf("%d presets, %d match", inNamespace, matching), "with", with},
	} {
		fmt.Fprintf(&table, "%-25s %10s %10s\n", row.name, measure.Percentile(row.took, 50).Round(10*time.Microsecond), measure.Percentile(row.took, 99).Round(10*time.Microsecond))
		for _, took := range row.took {
			fmt.Fprintf(&lines, "BenchmarkCreatePod/by=%s 1 %d ns/op\n", row.by, took.Nanoseconds())
		}
	}
	fmt.Fprintf(&table, "\nmemory of %d presets in the API server: %.1f MiB of heap, %.1f KiB each\n", *many, memory/(1<<20), memory/float64(*many)/(1<<10))
	fmt.Fprintf(&lines, "BenchmarkMemory/by=with 1 %.0f B/preset\n", memory/float64(*many))
	t.Log("\n" + table.String())
	if *results == "" {
		return
	}
	for file, text := range map[string]string{*results: lines.String(), strings.TrimSuffix(*results, ".txt") + ".log": table.String()} {
		if err := measure.Write(file, text); err != nil {
			t.Fatal(err)
		}
	}
}

// namespace makes a namespace that goes at the end.
func (b *bench) namespace() string {
	b.Helper()
	made, err := b.client.CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "podenv-bench-"}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := b.client.CoreV1().Namespaces().Delete(context.WithoutCancel(b.Context()), made.Name, metav1.DeleteOptions{}); err != nil {
			b.Error(err)
		}
	})
	return made.Name
}

func (b *bench) createPresets(namespace string, count int) {
	b.Helper()
	if err := measure.CreatePresets(b.Context(), b.dynamic, namespace, count, matching); err != nil {
		b.Fatal(err)
	}
}

// pod is one that the scheduler leaves alone.
func pod(dryRun bool) (*corev1.Pod, metav1.CreateOptions) {
	off := false
	o := metav1.CreateOptions{}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "website-", Labels: map[string]string{"role": "frontend"}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &off,
			SchedulingGates:              []corev1.PodSchedulingGate{{Name: "podenv.dev/never"}},
			Containers:                   []corev1.Container{{Name: "website", Image: "website"}},
		},
	}, o
}

// latencies creates pods in two namespaces in turn, of which the second one has presets.
func (b *bench) latencies() (without, with []time.Duration) {
	b.Helper()
	plain, preset := b.namespace(), b.namespace()
	b.createPresets(preset, inNamespace)
	ctx := b.Context()
	for deadline := time.Now().Add(time.Minute); ; {
		probe, o := pod(true)
		got, err := b.client.CoreV1().Pods(preset).Create(ctx, probe, o)
		if err != nil {
			b.Fatal(err)
		}
		if len(got.Spec.Containers[0].Env) == matching {
			break
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d presets are injected after a minute", len(got.Spec.Containers[0].Env), matching)
		}
	}
	create := func(namespace string) time.Duration {
		p, o := pod(false)
		start := time.Now()
		if _, err := b.client.CoreV1().Pods(namespace).Create(ctx, p, o); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	for range *podCount {
		without = append(without, create(plain))
		with = append(with, create(preset))
	}
	return without, with
}

// memory is by how many bytes the heap of the API server is larger with many presets.
func (b *bench) memory() float64 {
	b.Helper()
	const namespaces = 10
	var made []string
	for range namespaces {
		made = append(made, b.namespace())
	}
	before := b.heap()
	for _, namespace := range made {
		b.createPresets(namespace, *many/namespaces)
	}
	return b.heap() - before
}

// heap is what is left of the API server's heap after garbage collections.
func (b *bench) heap() float64 {
	b.Helper()
	get := b.client.CoreV1().RESTClient().Get
	for range 2 { // what has a finalizer goes with the second one
		if result := get().AbsPath("/debug/pprof/heap").Param("gc", "1").Do(b.Context()); result.Error() != nil {
			b.Fatal(result.Error())
		}
	}
	const heap = "go_memstats_heap_alloc_bytes"
	metrics, err := measure.APIServer(b.Context(), b.client, heap)
	if err != nil {
		b.Fatal(err)
	}
	return metrics.Value(heap)
}
