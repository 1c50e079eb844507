package components

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	nodeutil "k8s.io/kubernetes/pkg/util/node"
)

// KubeletConfig decodes the configuration that the kubelet of node runs with, a
// KubeletConfiguration of its own release, into the struct or map that into points to.
func KubeletConfig(ctx context.Context, client kubernetes.Interface, node string, into any) error {
	path := "/api/v1/nodes/" + node + "/proxy/configz"
	raw, err := get(ctx, client, path)
	if err != nil {
		return err
	}
	var configz struct {
		KubeletConfig json.RawMessage `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(raw, &configz); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := json.Unmarshal(configz.KubeletConfig, into); err != nil {
		return fmt.Errorf("reading the kubelet's configuration from %s: %w", path, err)
	}
	return nil
}

// KubeletStart returns when the process of node's kubelet started, in seconds since 1970. It
// identifies the process.
func KubeletStart(ctx context.Context, client kubernetes.Interface, node string) (float64, error) {
	const metric = "process_start_time_seconds"
	metrics, err := Scrape(ctx, client, KubeletMetrics(node))
	if err != nil {
		return 0, err
	}
	start := metrics.Sum(metric, nil)
	if start == 0 {
		return 0, fmt.Errorf("the kubelet of node %s has no metric %s", node, metric)
	}
	return start, nil
}

// KubeletHealth returns an error unless the kubelet of node reports that it is healthy, the node
// is Ready, and the kubelet's process is still the one that started at start.
func KubeletHealth(ctx context.Context, client kubernetes.Interface, node string, start float64) error {
	answer, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + node + "/proxy/healthz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("the kubelet of node %s is not healthy: %w: %s", node, err, answer)
	}
	if now, err := KubeletStart(ctx, client, node); err != nil {
		return err
	} else if now != start {
		return fmt.Errorf("the kubelet of node %s is not the process that it was: it was restarted", node)
	}
	object, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !nodeutil.IsNodeReady(object) {
		return fmt.Errorf("node %s is not ready: %v", node, object.Status.Conditions)
	}
	return nil
}
