package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/internal/progress"
)

// podsTime is how long some pods have to run, or to go.
const podsTime = 5 * time.Minute

// Cluster starts pods of each source on the cluster of client and reports how long
// they took from being scheduled to the first line of their main container, and how
// many API requests one costs. It deletes its namespace, also after Ctrl-C.
//
// For the time, one pod of each source starts together, so that drift hits all alike;
// for the requests, all pods of one source start at once, by themselves.
func Cluster(ctx context.Context, client kubernetes.Interface, pods int, step *progress.Step) (*Report, error) {
	c, err := newClusterBench(ctx, client, pods, step)
	if err != nil {
		return nil, err
	}
	defer c.clean(ctx)
	return c.run(ctx)
}

type clusterBench struct {
	client    kubernetes.Interface
	namespace string
	pods      int
	step      *progress.Step
	watch     *podWatch
	stop      func()
}

// newClusterBench makes a namespace with what the pods need.
func newClusterBench(ctx context.Context, client kubernetes.Interface, pods int, step *progress.Step) (_ *clusterBench, err error) {
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "podenv-bench-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("making a namespace: %w", err)
	}
	c := &clusterBench{client: client, namespace: namespace.Name, pods: pods, step: step, stop: func() {}}
	defer func() {
		if err != nil {
			c.clean(ctx)
		}
	}()
	if _, err := client.CoreV1().ConfigMaps(c.namespace).Create(ctx, configMap(), metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	w, err := client.CoreV1().Pods(c.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	c.stop, c.watch = w.Stop, newPodWatch(w)
	return c, nil
}

// clean deletes the namespace, also after Ctrl-C.
func (c *clusterBench) clean(ctx context.Context) {
	c.stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := c.client.CoreV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{}); err != nil {
		fmt.Fprintf(c.step.Log(), "deleting the namespace %s: %v\n", c.namespace, err)
	}
}

func (c *clusterBench) run(ctx context.Context) (*Report, error) {
	latencies := map[string][]time.Duration{}
	// The first round is not counted: images are unpacked in it.
	for i := range c.pods + 1 {
		c.step.Now("start latency: pod %d of %d of each kind", i, c.pods)
		took, err := c.round(ctx, i)
		if err != nil {
			return nil, err
		}
		for name, d := range took {
			if i > 0 {
				latencies[name] = append(latencies[name], d)
			}
		}
	}
	t := Table{Name: "cluster", Columns: []Column{
		{Name: "variables from"}, {Name: "start p50", Unit: Seconds}, {Name: "start p99", Unit: Seconds}, {Name: "API requests per pod", Unit: Number},
	}}
	var kinds []string
	for _, s := range sources {
		counts, err := c.requests(ctx, s)
		if err != nil {
			return nil, err
		}
		perPod, took := counts.over(c.pods), latencies[s.name]
		t.Add(s.what, percentile(took, 50).Seconds(), percentile(took, 99).Seconds(), perPod.sum())
		kinds = append(kinds, fmt.Sprintf("With %s: %s.", s.what, perPod))
	}
	t.Notes = append([]string{
		fmt.Sprintf("%d pods of each kind, %d variables each; every pod has the init container that writes the env file.", c.pods, variables),
		"start: from the watch event with the pod's node to the time that the container runtime gave the main container's first line.",
		"API requests: apiserver_request_total of " + strings.Join(podResources, ", ") + ", without watches.",
	}, kinds...)
	return &Report{Table: t}, nil
}

// round starts one pod of each source at a time and returns how long each took.
func (c *clusterBench) round(ctx context.Context, number int) (map[string]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, podsTime)
	defer cancel()
	var names []string
	for i := range sources {
		s := sources[(i+number)%len(sources)] // another one is first in every round
		name, err := c.create(ctx, s, number)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	if err := c.watch.awaitRunning(ctx, names); err != nil {
		return nil, err
	}
	took := map[string]time.Duration{}
	for i := range sources {
		s, name := sources[(i+number)%len(sources)], names[i]
		started, err := c.firstLine(ctx, name)
		if err != nil {
			return nil, err
		}
		took[s.name] = started.Sub(c.watch.scheduledAt(name))
		fmt.Fprintf(c.step.Log(), "%s started after %s\n", name, took[s.name])
	}
	// They go while the next ones start, as pods do on a cluster.
	return took, c.startDeletion(ctx)
}

func (c *clusterBench) create(ctx context.Context, s source, number int) (string, error) {
	pod, err := c.client.CoreV1().Pods(c.namespace).Create(ctx, s.pod(number), metav1.CreateOptions{})
	if apierrors.IsInvalid(err) {
		return "", fmt.Errorf("%w; is the gate EnvFiles on in the API server?", err)
	}
	if err != nil {
		return "", err
	}
	return pod.Name, nil
}

// firstLine returns when the main container of the pod printed its first line. What
// it printed must have the last variable: a pod without would have done less work.
func (c *clusterBench) firstLine(ctx context.Context, name string) (time.Time, error) {
	log, err := c.client.CoreV1().Pods(c.namespace).GetLogs(name, &v1.PodLogOptions{Container: mainContainer, Timestamps: true}).DoRaw(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading what pod %s printed: %w", name, err)
	}
	return parseFirstLine(string(log))
}

func parseFirstLine(log string) (time.Time, error) {
	stamp, text, _ := strings.Cut(log, " ")
	started, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Time{}, fmt.Errorf("its log has no time: %w", err)
	}
	key, value := variable(variables - 1)
	if want := key + "=" + value; !strings.Contains(text, want) {
		return time.Time{}, fmt.Errorf("the container did not see %s: is the gate EnvFiles on in the node's kubelet?", want)
	}
	return started, nil
}

// requests starts all pods of s at once and returns what was asked of the API server
// until all run and it has come to rest.
func (c *clusterBench) requests(ctx context.Context, s source) (requests, error) {
	ctx, cancel := context.WithTimeout(ctx, podsTime)
	defer cancel()
	c.step.Now("API requests: %d pods with %s", c.pods, s.what)
	if err := c.deleteAll(ctx); err != nil { // of the source before
		return nil, err
	}
	before, err := settledRequests(ctx, c.client)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range c.pods {
		name, err := c.create(ctx, s, c.pods+1+i) // a name that no round has used
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	if err := c.watch.awaitRunning(ctx, names); err != nil {
		return nil, err
	}
	after, err := settledRequests(ctx, c.client)
	if err != nil {
		return nil, err
	}
	counts := after.since(before)
	fmt.Fprintf(c.step.Log(), "%d pods with %s: %s\n", c.pods, s.what, counts)
	return counts, nil
}

func (c *clusterBench) startDeletion(ctx context.Context) error {
	return c.client.CoreV1().Pods(c.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// deleteAll deletes the pods and waits until they are gone.
func (c *clusterBench) deleteAll(ctx context.Context) error {
	if err := c.startDeletion(ctx); err != nil {
		return err
	}
	pods := c.client.CoreV1().Pods(c.namespace)
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		left, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && len(left.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("deleting the pods: %w", err)
	}
	return nil
}

// percentile is the smallest of took that p percent are not above.
func percentile(took []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
