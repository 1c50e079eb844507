package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
)

const (
	requestTimeout = 10 * time.Second
	// minReadyTime is how long a container must run after a failure before its pod counts as
	// ready: a container without a probe is ready as soon as it is started.
	minReadyTime = 10 * time.Second
	// logLines is how many of the last lines of a container's log an error shows.
	logLines = 5
)

// WaitServing waits until pods can be created and will run: the API server, all nodes, and the pods and
// controllers of kube-system are ready, the default service account exists, and the API server and every
// kubelet run with the requested gates. Its error says what it waited for last.
func (c *Cluster) WaitServing(ctx context.Context, limit time.Duration, step *progress.Step) error {
	if c.record == nil {
		return c.halfMade()
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	s := &serving{client: client, nodes: c.record.controlPlanes() + c.record.Workers, gates: c.record.Gates}
	shown := ""
	err = poll.Until(ctx, limit, func(ctx context.Context) error {
		err := s.check(ctx)
		if err != nil && err.Error() != shown {
			shown = err.Error()
			line, _, _ := strings.Cut(shown, "\n")
			step.Now("waiting for %s", line)
			fmt.Fprintln(step.Log(), shown)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cluster %s does not serve: %w", c.name, err)
	}
	return nil
}

// serving checks a cluster in the order of dependencies. An error names what to wait for.
type serving struct {
	client kubernetes.Interface
	nodes  int
	gates  map[string]bool
}

func (s *serving) check(ctx context.Context) error {
	for _, check := range []func(context.Context) error{
		s.apiServer, s.nodesReady, s.pods, s.controllers, s.serviceAccount, s.gatesSet,
	} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *serving) apiServer(ctx context.Context) error {
	if _, err := s.raw(ctx, "/readyz"); err != nil {
		return fmt.Errorf("the API server is not ready: %w", err)
	}
	return nil
}

func (s *serving) raw(ctx context.Context, path string) ([]byte, error) {
	return s.client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
}

func (s *serving) nodesReady(ctx context.Context) error {
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for _, n := range nodes.Items {
		if ready := NodeReady(&n); ready.Status != corev1.ConditionTrue {
			return fmt.Errorf("node %s is not ready: %s", n.Name, ready.Message)
		}
	}
	if len(nodes.Items) != s.nodes {
		return fmt.Errorf("%d of %d nodes have joined", len(nodes.Items), s.nodes)
	}
	return nil
}

// OfMinor returns the version of an API server, or an error if that is of another minor.
func OfMinor(client kubernetes.Interface, minor string) (string, error) {
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking for the version of the API server: %w", err)
	}
	if !strings.HasPrefix(version.GitVersion, minor+".") {
		return "", fmt.Errorf("the cluster runs %s: name its minor with --series or SERIES, so that the specs are those of the same one", version.GitVersion)
	}
	return version.GitVersion, nil
}

// NodeReady returns the node's condition Ready, or a condition with only a message.
func NodeReady(n *corev1.Node) corev1.NodeCondition {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition
		}
	}
	return corev1.NodeCondition{Message: "it has not reported yet"}
}

func (s *serving) pods(ctx context.Context) error {
	pods, err := s.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the pods of kube-system: %w", err)
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil {
			continue
		}
		if failed := failedContainer(&p); failed != nil && (!podutils.IsPodReady(&p) || !settled(failed)) {
			return s.notReady(ctx, &p, failed)
		}
		if !podutils.IsPodReady(&p) {
			return fmt.Errorf("pod %s is not ready: it is %s", p.Name, phase(&p))
		}
	}
	return nil
}

// phase returns the pod's phase, with the reason if it is not scheduled.
func phase(p *corev1.Pod) string {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("%s: %s", p.Status.Phase, condition.Message)
		}
	}
	return string(p.Status.Phase)
}

// failedContainer returns the status of a container that has failed or cannot start, or nil.
func failedContainer(p *corev1.Pod) *corev1.ContainerStatus {
	for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		waits := status.State.Waiting
		starts := waits == nil || waits.Reason == "" || waits.Reason == "ContainerCreating" || waits.Reason == "PodInitializing"
		if ended := lastTermination(&status); !starts || ended != nil && ended.ExitCode != 0 {
			return &status
		}
	}
	return nil
}

func lastTermination(status *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	return cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
}

// settled says whether a container has run for minReadyTime since it failed.
func settled(status *corev1.ContainerStatus) bool {
	running := status.State.Running
	return running != nil && time.Since(running.StartedAt.Time) >= minReadyTime
}

// notReady returns an error that says why a container does not run, with the end of its log.
func (s *serving) notReady(ctx context.Context, p *corev1.Pod, status *corev1.ContainerStatus) error {
	var reasons []string
	if waits := status.State.Waiting; waits != nil {
		reasons = append(reasons, strings.TrimSuffix(waits.Reason+": "+waits.Message, ": "))
	}
	log := ""
	if ended := lastTermination(status); ended != nil {
		reasons = append(reasons, fmt.Sprintf("it ended with exit status %d (%s) and was restarted %d times", ended.ExitCode, ended.Reason, status.RestartCount))
		log = s.log(ctx, p, status)
	}
	text := fmt.Sprintf("pod %s on node %s is not ready: container %s: %s", p.Name, p.Spec.NodeName, status.Name, strings.Join(reasons, "; "))
	if log != "" {
		text += "\nlast lines of its log:\n" + indent(log)
	}
	if remedy := remedyFor(text); remedy != "" {
		text += "\n" + remedy
	}
	return errors.New(text)
}

// log returns the end of the log of a failed container's last run, or "".
func (s *serving) log(ctx context.Context, p *corev1.Pod, status *corev1.ContainerStatus) string {
	text, err := s.client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{
		Container: status.Name, Previous: status.State.Terminated == nil, TailLines: ptr.To(int64(logLines)),
	}).DoRaw(ctx)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// controllers checks that kube-proxy, cluster DNS and routes have all their pods: a list of
// pods does not show those that do not exist yet.
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
		want := ptr.Deref(d.Spec.Replicas, 1)
		if d.Status.ObservedGeneration < d.Generation || d.Status.ReadyReplicas < want {
			return fmt.Errorf("deployment %s: %d of %d pods are ready", d.Name, d.Status.ReadyReplicas, want)
		}
	}
	if len(deployments.Items) == 0 {
		return fmt.Errorf("cluster DNS: kube-system has no deployment")
	}
	return nil
}

// serviceAccount checks for the default account: without it no pod is admitted.
func (s *serving) serviceAccount(ctx context.Context) error {
	if _, err := s.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("the default service account: %w", err)
	}
	return nil
}

// gatesSet checks the gates of running components. They cannot change: a wrong one ends the wait.
func (s *serving) gatesSet(ctx context.Context) error {
	if len(s.gates) == 0 {
		return nil
	}
	if err := s.gatesOf(ctx, "kube-apiserver", "/metrics"); err != nil {
		return err
	}
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
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
	have, err := featuregates.OnFromMetrics(bytes.NewReader(metrics))
	if err != nil {
		return fmt.Errorf("%s: %w", component, err)
	}
	if err := featuregates.Compare(component, s.gates, have); err != nil {
		return poll.Stop(err)
	}
	return nil
}
