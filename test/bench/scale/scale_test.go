// Package scale measures what the API server costs at a thousand nodes, which KWOK simulates. The same
// cluster runs the stock API server and the patched one in turn, in the order ABCDDCBA, so that what
// changes with time changes all alike. `podenv bench --only scale` runs it.
package scale

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"podenv.dev/featuregates"
	"podenv.dev/test/bench/measure"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "the cluster; without it nothing is measured")
	podenv     = flag.String("podenv", "", "the program podenv, which swaps the API server")
	name       = flag.String("name", "", "the name of the cluster")
	minor      = flag.String("series", "", "the minor of the cluster")
	programs   = flag.String("programs", "", "the folder of kwok, which simulates nodes, and kubectl-podenv")
	stages     = flag.String("stages", "", "the folder with what kwok does to objects, which its module has")
	added      = flag.String("added", "", "a file with the Go files that the patches add to the release")
	nodeCount  = flag.Int("nodes", 1000, "simulated nodes")
	creations  = flag.Int("creations", 1000, "pods that are created in each run, 20 a second")
	rounds     = flag.Int("rounds", 3, "rounds of eight runs")
	results    = flag.String("results", "", "the file for the results in the Go benchmark format")
)

// perSecond is the churn that the scalability SLOs of Kubernetes assume.
const perSecond = 20

// label is on everything that is made here.
const label = "podenv.dev/scale"

const (
	podsPerNode = 30  // before anything is measured
	presetCount = 100 // presets of a namespace that has them
	matching    = 3   // of them
)

// arm is an API server that is compared.
type arm struct {
	name    string
	build   string
	gates   string // changes, as podenv node gate takes them
	presets bool
}

// arms are for gates, those of the patched release.
func arms(gates map[string]bool) []arm {
	on, off := featuregates.Flag(gates), strings.Join(slices.Sorted(maps.Keys(gates)), "-,")+"-"
	return []arm{
		{name: "stock", build: "stock:" + *minor, gates: off},
		{name: "patched", build: "patched:" + *minor, gates: off},
		{name: "gates-on", build: "patched:" + *minor, gates: on},
		{name: "presets", build: "patched:" + *minor, gates: on, presets: true},
	}
}

// order is ABCDDCBA, rounds times.
func order(arms []arm, rounds int) (runs []arm) {
	for range rounds {
		runs = append(runs, arms...)
		back := slices.Clone(arms)
		slices.Reverse(back)
		runs = append(runs, back...)
	}
	return runs
}

func TestOrder(t *testing.T) {
	var names []string
	for _, a := range order([]arm{{name: "a"}, {name: "b"}}, 2) {
		names = append(names, a.name)
	}
	if got := strings.Join(names, ""); got != "abbaabba" {
		t.Errorf("the order is %s", got)
	}
}

// bench is a cluster that is measured.
type bench struct {
	*testing.T
	client  kubernetes.Interface
	dynamic dynamic.Interface
	server  string           // the node of the control plane
	kwok    chan string      // why it ended
	added   sets.Set[string] // the files that the patches add, as programs name them
}

func TestScale(t *testing.T) {
	if *kubeconfig == "" {
		t.Skip("without -kubeconfig: podenv bench --only scale gives one")
	}
	gates, err := featuregates.Enabled(*minor)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // so that the client does not wait
	b := &bench{T: t, client: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config)}
	servers, err := b.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "node-role.kubernetes.io/control-plane"})
	if err != nil || len(servers.Items) != 1 {
		t.Fatalf("the cluster must have one control plane: %v", err)
	}
	b.server = servers.Items[0].Name
	list, err := os.ReadFile(*added)
	if err != nil {
		t.Fatal(err)
	}
	b.added = addedFiles(string(list))
	b.simulate()
	b.nodes()
	b.fill()

	var lines strings.Builder
	all := arms(gates)
	runs := order(all, *rounds)
	for i, a := range runs {
		t.Logf("run %d of %d: %s", i+1, len(runs), a.name)
		another := all[0]
		if a.build == another.build {
			another = all[2]
		}
		line := fmt.Sprintf("BenchmarkCreatePod/by=%s %d %s", a.name, *creations, b.run(a, another))
		t.Log(line)
		fmt.Fprintln(&lines, line)
		b.write(lines.String())
	}
	b.swap(all[2])
	for range 3 {
		b.reads(&lines)
	}
	b.write(lines.String())
}

// write keeps the results so far: a run that is interrupted after most of an hour leaves them.
func (b *bench) write(lines string) {
	b.Helper()
	if err := measure.Write(*results, lines); err != nil {
		b.Fatal(err)
	}
}

// reads measures what reads all pods.
func (b *bench) reads(lines *strings.Builder) {
	b.Helper()
	start := time.Now()
	if _, err := b.client.CoreV1().Pods(metav1.NamespaceAll).List(b.Context(), metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	fmt.Fprintf(lines, "BenchmarkList/by=pods 1 %d ns/op\n", time.Since(start))
	start = time.Now()
	if out, err := exec.CommandContext(b.Context(), filepath.Join(*programs, "kubectl-podenv"), "audit", "--kubeconfig="+*kubeconfig).CombinedOutput(); err != nil {
		b.Fatalf("kubectl podenv audit: %v\n%s", err, out[:min(len(out), 2000)])
	}
	fmt.Fprintf(lines, "BenchmarkList/by=audit 1 %d ns/op\n", time.Since(start))
}

// simulate runs kwok until the test ends. Its nodes have no leases and send no heartbeats.
func (b *bench) simulate() {
	b.Helper()
	log, err := os.Create(filepath.Join(b.ArtifactDir(), "kwok.log"))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	args := []string{"--kubeconfig=" + *kubeconfig, "--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		"--node-lease-duration-seconds=0", "--server-address=127.0.0.1:0"}
	for _, stage := range []string{"node/fast/node-initialize", "pod/fast/pod-ready", "pod/fast/pod-delete"} {
		args = append(args, "--config="+filepath.Join(*stages, stage+".yaml"))
	}
	command := exec.CommandContext(ctx, filepath.Join(*programs, "kwok"), args...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.kwok = make(chan string, 1)
	go func() {
		err := command.Wait()
		text, _ := os.ReadFile(log.Name())
		b.kwok <- fmt.Sprintf("kwok ended: %v\n%s", err, text[max(0, len(text)-2000):])
	}()
	b.Cleanup(func() {
		cancel()
		log.Close()
	})
}

// each calls f with 0 to n-1, 32 at a time.
func (b *bench) each(n int, f func(ctx context.Context, i int) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(32)
	for i := range n {
		group.Go(func() error { return f(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// await waits until done says so. It shows what done counts, and leaves done at most a tenth of the time.
func (b *bench) await(what string, done func() (count int, ok bool, err error)) {
	b.Helper()
	for last := time.Now(); ; {
		start := time.Now()
		count, ok, err := done()
		pause := max(time.Second, 10*time.Since(start))
		switch {
		case ok && err == nil:
			return
		case len(b.kwok) > 0:
			b.Fatal(<-b.kwok)
		case b.Context().Err() != nil:
			b.Fatal(b.Context().Err())
		case time.Since(last) > 30*time.Second:
			last = time.Now()
			b.Logf("waiting for %s: %d (%v)", what, count, err)
		}
		time.Sleep(pause)
	}
}

func nodeName(i int) string { return fmt.Sprintf("simulated-%d", i) }

// nodes makes the simulated nodes.
func (b *bench) nodes() {
	b.Helper()
	room := corev1.ResourceList{"cpu": resource.MustParse("32"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	b.each(*nodeCount, func(ctx context.Context, i int) error {
		_, err := b.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: nodeName(i), Labels: map[string]string{label: "", "kubernetes.io/hostname": nodeName(i)}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: label, Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{Allocatable: room, Capacity: room},
		}, metav1.CreateOptions{})
		return err
	})
	b.await("nodes", func() (ready int, ok bool, err error) {
		list, err := b.client.CoreV1().Nodes().List(b.Context(), metav1.ListOptions{LabelSelector: label, ResourceVersion: "0"})
		if err != nil {
			return 0, false, err
		}
		for _, node := range list.Items {
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		return ready, ready == *nodeCount, nil
	})
}

// pod is one for a simulated node, which the scheduler finds unless node names it.
func pod(node string) *corev1.Pod {
	off, now := false, int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "website-", Labels: map[string]string{"role": "frontend"}},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			NodeSelector:                  map[string]string{label: ""},
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			AutomountServiceAccountToken:  &off,
			TerminationGracePeriodSeconds: &now,
			Containers:                    []corev1.Container{{Name: "website", Image: "website"}},
		},
	}
}

func (b *bench) namespace(name string) {
	b.Helper()
	if _, err := b.client.CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	b.await("the service account of "+name, func() (int, bool, error) {
		_, err := b.client.CoreV1().ServiceAccounts(name).Get(b.Context(), "default", metav1.GetOptions{})
		return 0, err == nil, err
	})
}

// fill makes the pods that are there before anything is measured.
func (b *bench) fill() {
	b.Helper()
	b.namespace("filled")
	count, start := *nodeCount*podsPerNode, time.Now()
	b.each(count, func(ctx context.Context, i int) error {
		_, err := b.client.CoreV1().Pods("filled").Create(ctx, pod(nodeName(i%*nodeCount)), metav1.CreateOptions{})
		return err
	})
	b.running("filled", count)
	b.Logf("%d pods are running after %s", count, time.Since(start).Round(time.Second))
}

// running waits until count pods of a namespace are running.
func (b *bench) running(namespace string, count int) {
	b.Helper()
	b.await("pods", func() (int, bool, error) {
		list, err := b.client.CoreV1().Pods(namespace).List(b.Context(), metav1.ListOptions{ResourceVersion: "0", FieldSelector: "status.phase=Running"})
		if err != nil {
			return 0, false, err
		}
		return len(list.Items), len(list.Items) >= count, nil
	})
}

// swap has the cluster run the API server of an arm.
func (b *bench) swap(a arm) {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), *podenv, "node", "swap", b.server, "kube-apiserver", "--plain", "--name="+*name, "--series="+*minor, "--build="+a.build, "--gates="+a.gates).CombinedOutput()
	if err != nil {
		b.Fatalf("podenv node swap: %v\n%s", err, out)
	}
}

// run has the API server of an arm, and creates pods. The swap to another arm before makes API servers of all
// runs equally old: two of four that were more than five minutes old took twice the processor time of all others.
func (b *bench) run(a, another arm) measured {
	b.Helper()
	b.swap(another)
	b.swap(a)
	const namespace = "measured"
	b.namespace(namespace)
	if a.presets {
		if err := measure.CreatePresets(b.Context(), b.dynamic, namespace, presetCount, matching); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(settle)
	before, profiled := b.metrics(), b.profile()
	limit := rate.NewLimiter(perSecond, 1)
	took := make([]time.Duration, *creations)
	b.each(*creations, func(ctx context.Context, i int) error {
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		start := time.Now()
		made, err := b.client.CoreV1().Pods(namespace).Create(ctx, pod(""), metav1.CreateOptions{})
		took[i] = time.Since(start)
		if err == nil && len(made.Spec.Containers[0].Env) != map[bool]int{true: matching}[a.presets] {
			err = fmt.Errorf("%s: the pod has the variables %v", a.name, made.Spec.Containers[0].Env)
		}
		return err
	})
	b.running(namespace, *creations)
	m := b.measure(before, took, namespace)
	m.added = b.share(<-profiled)
	switch {
	case a.build == "stock:"+*minor && m.added > 0:
		b.Fatalf("%.3f%% of the stock API server's time is that of files which the patches add", m.added)
	case a.presets && m.added == 0:
		b.Fatal("no file that the patches add was seen to inject presets")
	}
	b.remove(namespace)
	return m
}

// settle is how long the API server has after its start, in which controllers list everything.
const settle = 45 * time.Second

// remove deletes a namespace, and waits until it is gone: an API server without presets would leave them.
func (b *bench) remove(name string) {
	b.Helper()
	b.await("the namespace "+name+" to go", func() (int, bool, error) {
		err := b.client.CoreV1().Namespaces().Delete(b.Context(), name, metav1.DeleteOptions{})
		return 0, apierrors.IsNotFound(err), nil
	})
}
