package node

import (
	"bytes"
	"context"
	"fmt"
	"regexp"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/cluster"
)

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

// runningState reads the target's metrics.
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

// get reads a path of the target's HTTP server: of a kubelet through the API server, of a
// static pod on the node, because another control plane may answer for the API server.
func (t *target) get(ctx context.Context, path string) ([]byte, error) {
	if t.name == "kubelet" {
		return t.client.CoreV1().RESTClient().Get().Resource("nodes").Name(t.node).SubResource("proxy").Suffix(path).DoRaw(ctx)
	}
	out, err := t.exec(ctx, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf",
		"--server="+loopback[t.name], "--insecure-skip-tls-verify", "get", "--raw="+path)
	return []byte(out), err
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

// check returns an error that says how the state of a component differs from the wanted one.
func (r runningState) check(component string, want cluster.State) error {
	if r.version != want.Version {
		return fmt.Errorf("%s says that it is %s, want %s", component, r.version, want.Version)
	}
	return featuregates.Compare(component, want.Gates, r.gates)
}
