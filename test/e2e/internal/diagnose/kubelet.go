package diagnose

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// kubeletLog returns the last lines that the kubelet of node logged, by whichever
// way the cluster offers.
func kubeletLog(ctx context.Context, client kubernetes.Interface, node string) (string, error) {
	text, queryErr := queryLog(ctx, client, node)
	if queryErr == nil {
		return text, nil
	}
	text, containerErr := containerLog(ctx, node)
	if containerErr == nil {
		return text, nil
	}
	return "", errors.Join(queryErr, containerErr)
}

// queryLog asks the kubelet itself (KEP-2258, node log query), which needs the gate
// NodeLogQuery and enableSystemLogQuery in the kubelet's configuration.
func queryLog(ctx context.Context, client kubernetes.Interface, node string) (string, error) {
	text, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/"+node+"/proxy/logs/").
		Param("query", "kubelet").Param("tailLines", strconv.Itoa(tailLines)).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("node log query: %w", err)
	}
	if isListing(string(text)) {
		return "", errors.New("node log query: off in this kubelet")
	}
	return string(text), nil
}

// isListing recognizes the list of files that a kubelet without log queries answers
// with, whatever the query.
func isListing(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	return strings.HasPrefix(text, "<pre>") || strings.HasPrefix(text, "<!doctype")
}

// containerLog reads the journal of a node that is a container of this machine, as
// kind's nodes are.
func containerLog(ctx context.Context, node string) (string, error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return "", errors.New("journal of a kind node: no docker on this machine")
	}
	out, err := exec.CommandContext(ctx, docker, "exec", node,
		"journalctl", "--unit=kubelet", "--no-pager", "--lines="+strconv.Itoa(tailLines)).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("journal of a kind node: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
