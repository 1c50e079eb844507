package report

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/run"
)

// metricsComponent is started for its metrics: without an API server it serves them within a
// second, which kubelet and kube-apiserver do not. All components of a tree link the same
// registry of gates.
const metricsComponent = "kube-controller-manager"

// metricsTimeout is how long metricsComponent may take to serve its metrics.
const metricsTimeout = 30 * time.Second

// noServer is a kubeconfig for an API server that does not run.
const noServer = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
users: [{name: none, user: {}}]
current-context: none
`

// metricsGates starts binary without an API server and reads kubernetes_feature_enabled: the
// defaults, since it sets no gate.
func metricsGates(ctx context.Context, binary string) (map[string]featuregates.Reported, error) {
	scratch, err := os.MkdirTemp("", "podenv-gates-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	kubeconfig := filepath.Join(scratch, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(noServer), 0o600); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- run.Command(ctx, binary, "--kubeconfig="+kubeconfig, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
			"--cert-dir="+scratch, "--authorization-always-allow-paths=/metrics").Run()
		close(ended)
	}()
	defer func() { cancel(); <-ended }()
	return pollMetrics(ctx, fmt.Sprintf("https://127.0.0.1:%d/metrics", port), ended)
}

// freePort returns a port of the loopback interface that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// pollMetrics reads the gates from url as soon as it is served. It fails when the process that
// serves it ends, or ctx does.
func pollMetrics(ctx context.Context, url string, ended <-chan error) (gates map[string]featuregates.Reported, err error) {
	client := &http.Client{Transport: &http.Transport{
		// The component's certificate is self-signed, and the connection is on the loopback interface.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
	defer client.CloseIdleConnections()
	err = poll.Until(ctx, metricsTimeout, func(ctx context.Context) error {
		select {
		case err := <-ended:
			return poll.Stop(errors.Join(errors.New("it ended before it served its metrics"), err))
		default:
		}
		gates, err = getMetrics(ctx, client, url)
		return err
	})
	return gates, err
}

func getMetrics(ctx context.Context, client *http.Client, url string) (map[string]featuregates.Reported, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return featuregates.FromMetrics(response.Body)
}

// gateInHelp is what a component's --help says about the gate; empty if it is not listed.
func gateInHelp(help, name string) string {
	m := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `=true\|false \(([^)]*)\)`).FindStringSubmatch(help)
	if m == nil {
		return ""
	}
	return m[1]
}

// matchesHelp reports whether line, the result of gateInHelp, has the stage and default of gate.
// --help does not list GA gates.
func matchesHelp(line string, gate featuregates.Reported) bool {
	if gate.Stage == "" {
		return line == ""
	}
	return line == fmt.Sprintf("%s - default=%t", gate.Stage, gate.Enabled)
}
