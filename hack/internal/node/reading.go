package node

import (
	"context"
	"fmt"
	"regexp"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/gates"
)

// reading is what a running component says of itself.
type reading struct {
	version string
	gates   map[string]bool // all that it knows
}

// loopback is where the static pods of a control plane serve on their node. kubeadm's
// manifests have all but the API server listen nowhere else.
var loopback = map[string]string{
	"kube-apiserver":          "https://127.0.0.1:6443",
	"kube-controller-manager": "https://127.0.0.1:10257",
	"kube-scheduler":          "https://127.0.0.1:10259",
}

// read asks the target for its version and its gates: the kubelet through the API server, a
// static pod on the node itself, since another control plane may answer for the API server.
func (t *target) read(ctx context.Context) (reading, error) {
	var metrics []byte
	var err error
	if t.name == "kubelet" {
		metrics, err = t.client.CoreV1().RESTClient().Get().Resource("nodes").Name(t.node).SubResource("proxy").Suffix("metrics").DoRaw(ctx)
	} else {
		var out string
		out, err = t.get(ctx, "/metrics")
		metrics = []byte(out)
	}
	if err != nil {
		return reading{}, fmt.Errorf("the metrics of %s: %w", t.name, err)
	}
	r, err := parseReading(metrics)
	if err != nil {
		return reading{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return r, nil
}

// get reads a path of a static pod's server as the administrator.
func (t *target) get(ctx context.Context, path string) (string, error) {
	return t.exec(ctx, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf",
		"--server="+loopback[t.name], "--insecure-skip-tls-verify", "get", "--raw="+path)
}

// metricVersion is a line of the metric that has a component's build, see
// k8s.io/component-base/metrics/version.
var metricVersion = regexp.MustCompile(`(?m)^kubernetes_build_info\{(?:[^}]*,)?git_version="([^"]+)"`)

func parseReading(metrics []byte) (reading, error) {
	known, err := gates.Parse(metrics)
	if err != nil {
		return reading{}, err
	}
	version := metricVersion.FindSubmatch(metrics)
	if version == nil {
		return reading{}, fmt.Errorf("the metrics do not have kubernetes_build_info")
	}
	return reading{version: string(version[1]), gates: known}, nil
}

// compare says in which way a component that says r of itself is not as wanted.
func (r reading) compare(component string, want cluster.State) error {
	if r.version != want.Version {
		return fmt.Errorf("%s says that it is %s, want %s", component, r.version, want.Version)
	}
	return gates.Compare(component, want.Gates, r.gates)
}
