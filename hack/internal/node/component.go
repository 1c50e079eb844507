package node

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
)

// component changes one kind of component on one node.
type component interface {
	// state returns the current state. Only its gates are always set: a component that is
	// down has no version, and perhaps no executable.
	state(ctx context.Context) (cluster.State, error)
	// files lists the files that a change may replace: the build, the configuration.
	files() []string
	// stage copies a change, which leads to the state to, to the node. It does not affect what runs.
	stage(ctx context.Context, ch change, to cluster.State) error
	// apply activates the staged change.
	apply(ctx context.Context) error
	// waitServing waits until the component serves in the state want.
	waitServing(ctx context.Context, want cluster.State) error
	// revert undoes apply.
	revert(ctx context.Context) error
	// log returns the end of the component's log.
	log(ctx context.Context) string
	// cleanUp removes what stage and apply left on the node beside copies of files.
	cleanUp(ctx context.Context) error
}

var (
	onEveryNode = []string{"kubelet", "kubeadm", "kubectl", "kube-proxy"}
	// allComponents is in the order of undo.
	allComponents = append(slices.Clone(Components), "kube-proxy", "kubeadm", "kubectl")
)

// target is a component on a node. Its methods are what several kinds of components share.
type target struct {
	*cluster.Cluster
	client     kubernetes.Interface
	node, name string
	step       *progress.Step    // its log gets the output of the container engine
	sums       map[string]string // SHA-256 of the executable of the last process seen, by process ID
}

func (t *target) component() (component, error) {
	switch t.name {
	case "kubelet":
		return &kubelet{target: t}, nil
	case "kubeadm", "kubectl":
		return &executable{t}, nil
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd":
		return &staticPod{target: t}, nil
	case "kube-proxy":
		return &daemonSet{target: t}, nil
	}
	return nil, fmt.Errorf("%q is not a component of a node: choose %s", t.name, strings.Join(allComponents, ", "))
}

func (t *target) cleanUp(context.Context) error { return nil }

func (t *target) exec(ctx context.Context, args ...string) (string, error) {
	return t.Exec(ctx, t.node, args...)
}

// start runs the build that is on the node.
func (t *target) start(ctx context.Context, args ...string) error {
	exe := binDir + t.name
	if !slices.Contains(onEveryNode, t.name) {
		pid, err := t.pid(ctx)
		if err != nil {
			return err
		}
		exe = "/proc/" + pid + "/exe"
	}
	_, err := t.exec(ctx, append([]string{exe}, args...)...)
	return err
}

// processes prints the processes with the name $0 and their parents.
const processes = `for pid in $(pidof "$0"); do echo "$pid $(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")"; done`

// pid returns the ID of the component's only process on the node.
func (t *target) pid(ctx context.Context) (string, error) {
	out, err := t.exec(ctx, "sh", "-c", processes, t.name)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	pids := withoutChildren(out)
	if err != nil || len(pids) == 0 {
		return "", fmt.Errorf("%s does not run", t.name)
	}
	if len(pids) > 1 {
		return "", fmt.Errorf("more than one process of %s runs: %s", t.name, strings.Join(pids, " "))
	}
	return pids[0], nil
}

// withoutChildren returns the processes in list whose parent is not in it. Between fork and
// exec a process has its parent's name, such as the iptables that kube-proxy starts. A
// process that has ended since it was listed has no parent.
func withoutChildren(list string) (pids []string) {
	parents := map[string]string{}
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) == 2 {
			parents[fields[0]] = fields[1]
		}
	}
	for pid, parent := range parents {
		if _, child := parents[parent]; !child {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

func (t *target) checkBuild(ctx context.Context, pid, sum string) error {
	have, err := t.processSum(ctx, pid)
	if err == nil && have != sum {
		err = fmt.Errorf("a %s with SHA-256 %s runs, want %s", t.name, have, sum)
	}
	return err
}

func (t *target) processSum(ctx context.Context, pid string) (string, error) {
	if sum, ok := t.sums[pid]; ok {
		return sum, nil
	}
	sum, err := t.fileSum(ctx, "/proc/"+pid+"/exe")
	if err == nil {
		t.sums = map[string]string{pid: sum}
	}
	return sum, err
}

// log returns the end of the log of the component's newest container.
func (t *target) log(ctx context.Context) string {
	out, err := t.exec(ctx, "sh", "-c", fmt.Sprintf(`tail -n %s "$(ls -t /var/log/containers/%s-*.log | head -n 1)"`, logLines, t.name))
	if err != nil {
		return err.Error()
	}
	return out
}

// serveTimeout is how long the component may take to serve after a change. Pods of kube-proxy are
// replaced one by one, by a controller manager that may first have to become the leader. The hooks
// of an API server take more than a minute on a busy host.
func (t *target) serveTimeout() time.Duration {
	switch t.name {
	case "kube-proxy":
		return 4 * serveTimeout
	case "kube-apiserver":
		return 2 * serveTimeout
	}
	return serveTimeout
}

// await waits until the wanted build runs, is healthy, and reports the wanted version and gates.
func (t *target) await(ctx context.Context, want cluster.State, runs func(context.Context, string) error, healthy func(context.Context) error) error {
	return poll.Until(ctx, t.serveTimeout(), func(ctx context.Context) error {
		if err := runs(ctx, want.SHA256); err != nil {
			return err
		}
		if err := healthy(ctx); err != nil || want.Version == "" || !slices.Contains(Components, t.name) {
			return err
		}
		r, err := t.runningState(ctx)
		if err != nil {
			return err
		}
		return r.check(t.name, want)
	})
}

// isServing says whether the component reports the version and gates that the operation wants.
func (i *instance) isServing(ctx context.Context) bool {
	if !slices.Contains(Components, i.target.name) {
		return true // state has read what runs
	}
	r, err := i.target.runningState(ctx)
	return err == nil && (i.to.Version == "" || r.check(i.target.name, i.to) == nil)
}

// runningState is what a running component reports in its metrics.
type runningState struct {
	version string
	gates   map[string]bool // all that it knows
}

// loopback has the URLs of a control plane's static pods on their node. In kubeadm's manifests
// all of them but the API server listen only there.
var loopback = map[string]string{
	"kube-apiserver":          "https://127.0.0.1:6443",
	"kube-controller-manager": "https://127.0.0.1:10257",
	"kube-scheduler":          "https://127.0.0.1:10259",
}

func (t *target) runningState(ctx context.Context) (runningState, error) {
	metrics, err := t.get(ctx, "/metrics")
	if err != nil {
		return runningState{}, fmt.Errorf("the metrics of %s: %w", t.name, err)
	}
	r, err := parseMetrics(metrics)
	if err != nil {
		return runningState{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return r, nil
}

// Metrics reads the metrics of one of Components of a node.
func Metrics(ctx context.Context, c *cluster.Cluster, client kubernetes.Interface, node, component string) ([]byte, error) {
	return (&target{Cluster: c, client: client, node: node, name: component}).get(ctx, "/metrics")
}

// get reads a text of the target's HTTP server, its last newline included: of a kubelet through the API
// server, of a static pod on the node, because another control plane may answer for the API server.
func (t *target) get(ctx context.Context, path string) ([]byte, error) {
	if t.name == "kubelet" {
		return t.client.CoreV1().RESTClient().Get().Resource("nodes").Name(t.node).SubResource("proxy").Suffix(path).DoRaw(ctx)
	}
	out, err := t.exec(ctx, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf",
		"--server="+loopback[t.name], "--insecure-skip-tls-verify", "get", "--raw="+path)
	return []byte(out + "\n"), err
}

// metricVersion is a line of the metric that has a component's build, see
// k8s.io/component-base/metrics/version.
var metricVersion = regexp.MustCompile(`(?m)^kubernetes_build_info\{(?:[^}]*,)?git_version="([^"]+)"`)

func parseMetrics(metrics []byte) (runningState, error) {
	known, err := featuregates.OnFromMetrics(bytes.NewReader(metrics))
	if err != nil {
		return runningState{}, err
	}
	version := metricVersion.FindSubmatch(metrics)
	if version == nil {
		return runningState{}, fmt.Errorf("the metrics do not have kubernetes_build_info")
	}
	return runningState{version: string(version[1]), gates: known}, nil
}

func (r runningState) check(component string, want cluster.State) error {
	if r.version != want.Version {
		return fmt.Errorf("%s says that it is %s, want %s", component, r.version, want.Version)
	}
	return featuregates.Compare(component, want.Gates, r.gates)
}
