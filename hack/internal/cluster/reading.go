package cluster

import (
	"bytes"
	"context"
	"fmt"
	"regexp"

	"k8s.io/client-go/kubernetes"
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

// read asks a component of a node for its version and its gates: the kubelet through
// the API server, a static pod on the node itself, since another control plane may
// answer for the API server.
func (c *Cluster) read(ctx context.Context, client kubernetes.Interface, node Node, component string) (reading, error) {
	var metrics []byte
	var err error
	if component == "kubelet" {
		metrics, err = client.CoreV1().RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").Suffix("metrics").DoRaw(ctx)
	} else {
		var out string
		out, err = c.get(ctx, node, component, "/metrics")
		metrics = []byte(out)
	}
	if err != nil {
		return reading{}, fmt.Errorf("the metrics of %s: %w", component, err)
	}
	r, err := parseReading(metrics)
	if err != nil {
		return reading{}, fmt.Errorf("%s: %w", component, err)
	}
	return r, nil
}

// get reads a path of a static pod's server as the administrator.
func (c *Cluster) get(ctx context.Context, node Node, component, path string) (string, error) {
	return c.Exec(ctx, node.Name, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf",
		"--server="+loopback[component], "--insecure-skip-tls-verify", "get", "--raw="+path)
}

// metricVersion is a line of the metric that tells a component's build, see
// k8s.io/component-base/metrics/version.
var metricVersion = regexp.MustCompile(`(?m)^kubernetes_build_info\{(?:[^}]*,)?git_version="([^"]+)"`)

func parseReading(metrics []byte) (reading, error) {
	gates, err := parseGates(bytes.NewReader(metrics))
	if err != nil {
		return reading{}, err
	}
	version := metricVersion.FindSubmatch(metrics)
	if version == nil {
		return reading{}, fmt.Errorf("the metrics do not have kubernetes_build_info")
	}
	return reading{version: string(version[1]), gates: gates}, nil
}

// compare says in which way a component that says r of itself is not as wanted.
func (r reading) compare(component string, want state) error {
	if r.version != want.Version {
		return fmt.Errorf("%s says that it is %s, want %s", component, r.version, want.Version)
	}
	return compareGates(component, want.Gates, r.gates)
}

// says checks what the component of the swap says of itself on a node, if it is known
// what that should be.
func (s *swap) says(ctx context.Context, client kubernetes.Interface, node Node, want state) error {
	if want.Version == "" {
		return nil
	}
	r, err := s.read(ctx, client, node, s.component)
	if err != nil {
		return err
	}
	return r.compare(s.component, want)
}
