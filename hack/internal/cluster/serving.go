package cluster

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/internal/progress"
)

// requestTime is how long one request to the API server may take.
const requestTime = 10 * time.Second

// WaitServing waits until pods can be created and will run: the API server is
// ready, so are all nodes and the pods and controllers of kube-system, the default
// service account is there, and the gates are as asked for in the API server and
// every kubelet that runs. Its error says what it waited for last.
func (c *Cluster) WaitServing(ctx context.Context, step *progress.Step) error {
	limit := c.waitReady
	if limit == 0 {
		limit = waitReady
	}
	return c.waitServing(ctx, limit, step)
}

func (c *Cluster) waitServing(ctx context.Context, limit time.Duration, step *progress.Step) error {
	if c.record == nil {
		return fmt.Errorf("cluster %s is half-made: run `podenv up`", c.name)
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	s := &serving{client: client, nodes: 1 + c.record.Workers, gates: c.record.Gates}
	said := ""
	err = poll(ctx, limit, func(ctx context.Context) error {
		err := s.check(ctx)
		if err != nil && err.Error() != said {
			said = err.Error()
			step.Now("waiting for %s", said)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cluster %s does not serve: %w", c.name, err)
	}
	return nil
}

// serving checks a cluster, what depends on nothing first. An error names what
// there is to wait for.
type serving struct {
	client kubernetes.Interface
	nodes  int
	gates  map[string]bool
}

func (s *serving) check(ctx context.Context) error {
	for _, check := range []func(context.Context) error{
		s.apiServer, s.nodesReady, s.controllers, s.pods, s.serviceAccount, s.gatesSet,
	} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *serving) apiServer(ctx context.Context) error {
	if _, err := s.raw(ctx, "/readyz"); err != nil {
		return fmt.Errorf("the API server to be ready: %w", err)
	}
	return nil
}

func (s *serving) raw(ctx context.Context, path string) ([]byte, error) {
	return s.client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
}

func (s *serving) nodesReady(ctx context.Context) error {
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("the list of nodes: %w", err)
	}
	for _, n := range nodes.Items {
		if ready := nodeReady(&n); ready.Status != corev1.ConditionTrue {
			return fmt.Errorf("node %s to be ready: %s", n.Name, ready.Message)
		}
	}
	if len(nodes.Items) != s.nodes {
		return fmt.Errorf("%d nodes: %d have joined", s.nodes, len(nodes.Items))
	}
	return nil
}

// nodeReady is the node's condition Ready; its zero value where it has none.
func nodeReady(n *corev1.Node) corev1.NodeCondition {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition
		}
	}
	return corev1.NodeCondition{Message: "it has not reported yet"}
}

// controllers checks that kube-proxy, cluster DNS and routes have all the pods that
// they should: pods that do not exist yet are not in a list of pods.
func (s *serving) controllers(ctx context.Context) error {
	sets, err := s.client.AppsV1().DaemonSets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("the daemon sets of kube-system: %w", err)
	}
	for _, d := range sets.Items {
		if d.Status.ObservedGeneration < d.Generation || d.Status.DesiredNumberScheduled == 0 || d.Status.NumberReady < d.Status.DesiredNumberScheduled {
			return fmt.Errorf("daemon set %s: %d of %d pods are ready", d.Name, d.Status.NumberReady, s.nodes)
		}
	}
	deployments, err := s.client.AppsV1().Deployments(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("the deployments of kube-system: %w", err)
	}
	for _, d := range deployments.Items {
		want := int32(1)
		if d.Spec.Replicas != nil {
			want = *d.Spec.Replicas
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.ReadyReplicas < want {
			return fmt.Errorf("deployment %s: %d of %d pods are ready", d.Name, d.Status.ReadyReplicas, want)
		}
	}
	if len(deployments.Items) == 0 {
		return fmt.Errorf("cluster DNS: kube-system has no deployment")
	}
	return nil
}

func (s *serving) pods(ctx context.Context) error {
	pods, err := s.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("the pods of kube-system: %w", err)
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil && !podReady(&p) {
			return fmt.Errorf("pod %s to be ready: it is %s", p.Name, p.Status.Phase)
		}
	}
	return nil
}

func podReady(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// serviceAccount checks for the account without which no pod is admitted.
func (s *serving) serviceAccount(ctx context.Context) error {
	_, err := s.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the default service account: %w", err)
	}
	return nil
}

// gatesSet checks the gates of what runs. A component cannot change them while it
// runs, so that a wrong one is fatal.
func (s *serving) gatesSet(ctx context.Context) error {
	if len(s.gates) == 0 {
		return nil
	}
	if err := s.gatesOf(ctx, "kube-apiserver", "/metrics"); err != nil {
		return err
	}
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("the list of nodes: %w", err)
	}
	for _, n := range nodes.Items {
		if err := s.gatesOf(ctx, "the kubelet of "+n.Name, "/api/v1/nodes/"+n.Name+"/proxy/metrics"); err != nil {
			return err
		}
	}
	return nil
}

func (s *serving) gatesOf(ctx context.Context, component, path string) error {
	metrics, err := s.raw(ctx, path)
	if err != nil {
		return fmt.Errorf("the metrics of %s: %w", component, err)
	}
	have, err := parseGates(bytes.NewReader(metrics))
	if err != nil {
		return fmt.Errorf("%s: %w", component, err)
	}
	if err := compareGates(component, s.gates, have); err != nil {
		return fatal{err}
	}
	return nil
}
