package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/options"
)

// restoreTimeout is how long podenv has to restore a node when it is interrupted.
const restoreTimeout = 3 * time.Minute

// scriptTimeout limits a script on a node, in seconds.
const scriptTimeout = "120"

// Options are the flags of the suites: which podenv operates which cluster.
var Options options.Options

// RequirePodenv skips the running spec on a cluster that no podenv can operate.
func RequirePodenv() {
	ginkgo.GinkgoHelper()
	if Options.Podenv == "" || Options.Cluster == "" || Options.Minor == "" {
		ginkgo.Skip("the nodes cannot be operated: give --podenv.cli, --podenv.cluster and --podenv.minor, as `podenv e2e --name NAME` does")
	}
}

// Node is a node under operation.
type Node string

// Drain cordons the node and evicts its pods, emptyDir volumes included, as the KEPs require
// before the kubelet is changed.
func (n Node) Drain(ctx context.Context) {
	ginkgo.GinkgoHelper()
	podenv(ctx, "drain", string(n), "--delete-emptydir-data", "--force")
}

// Uncordon lets the node take pods again.
func (n Node) Uncordon(ctx context.Context) {
	ginkgo.GinkgoHelper()
	podenv(ctx, "uncordon", string(n))
}

// Swap makes the node run another build of a component: "stock:v1.32", "patched:v1.33". With
// the same restart it changes gates: "NAME=true", "NAME-".
func (n Node) Swap(ctx context.Context, component, build string, gates ...string) {
	ginkgo.GinkgoHelper()
	podenv(ctx, "swap", string(n), component, "--build", build, "--gates", strings.Join(gates, ","))
}

// TrySwap is a Swap that may fail. After an error, the node is as it was before.
func (n Node) TrySwap(ctx context.Context, component, build string) error {
	_, err := tryPodenv(ctx, "swap", string(n), component, "--build", build)
	return err
}

// Restart restarts a component.
func (n Node) Restart(ctx context.Context, component string) {
	ginkgo.GinkgoHelper()
	podenv(ctx, "restart", string(n), component)
}

// Undo restores the node as it was before all operations.
func (n Node) Undo(ctx context.Context) {
	ginkgo.GinkgoHelper()
	podenv(ctx, "undo", string(n))
}

// Version is the version that a component of the node reports.
func (n Node) Version(ctx context.Context, component string) string {
	ginkgo.GinkgoHelper()
	var states []struct{ Node, Component, Version string }
	framework.ExpectNoError(json.Unmarshal([]byte(podenv(ctx, "list", "-o", "json")), &states))
	for _, s := range states {
		if s.Node == string(n) && s.Component == component {
			return s.Version
		}
	}
	framework.Failf("node %s has no %s", n, component)
	return ""
}

// Run runs a script on the node, as root, and returns its output. Unlike a shell in a
// pod it needs neither the kubelet nor the API server.
func (n Node) Run(ctx context.Context, script string) string {
	ginkgo.GinkgoHelper()
	out, err := n.TryRun(ctx, script)
	framework.ExpectNoError(err)
	return out
}

// TryRun is Run for a script that may fail.
func (n Node) TryRun(ctx context.Context, script string) (string, error) {
	// Interrupting docker exec does not end the script, so it has a limit of its own.
	return docker(ctx, "exec", string(n), "timeout", scriptTimeout, "sh", "-ec", script)
}

// Reboot ends all processes of the node and starts it again.
func (n Node) Reboot(ctx context.Context) {
	ginkgo.GinkgoHelper()
	ginkgo.By("rebooting node " + string(n))
	_, err := docker(ctx, "restart", string(n))
	framework.ExpectNoError(err)
}

// docker runs docker. A node is a container with the node's name.
func docker(ctx context.Context, args ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	return string(out), err
}

// podenv runs `podenv node` and returns its output. The progress goes to the spec's report.
func podenv(ctx context.Context, args ...string) string {
	ginkgo.GinkgoHelper()
	out, err := tryPodenv(ctx, args...)
	framework.ExpectNoError(err)
	return out
}

// tryPodenv is podenv for an operation that may fail. The error has podenv's standard error.
func tryPodenv(ctx context.Context, args ...string) (string, error) {
	ginkgo.By("podenv node " + strings.Join(args, " "))
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, Options.Podenv, append([]string{"node", "--plain", "--name", Options.Cluster}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// When a spec is interrupted, podenv restores the node, as after Ctrl-C.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = restoreTimeout
	err := cmd.Run()
	ginkgo.GinkgoWriter.Print(stderr.String())
	if err != nil {
		return "", fmt.Errorf("podenv node %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// RequirePlugin skips the running spec where `kubectl podenv` is not built.
func RequirePlugin() {
	ginkgo.GinkgoHelper()
	if Options.Podenv == "" {
		ginkgo.Skip("no kubectl podenv: give --podenv.cli, as `podenv e2e --name NAME` does")
	}
}

// Plugin returns the command `kubectl podenv` with args. Its program is beside podenv.
func Plugin(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(filepath.Dir(Options.Podenv), "kubectl-podenv"), args...)
}

// Audit returns the objects of a namespace in which `kubectl podenv audit` finds something, as KIND/NAME,
// without duplicates.
func Audit(ctx context.Context, namespace string) []string {
	ginkgo.GinkgoHelper()
	out, err := Plugin(ctx, "audit", "--kubeconfig", framework.TestContext.KubeConfig, "--namespace", namespace, "-o", "json").Output()
	const exitFound = 3 // the exit status where it finds something
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitFound {
		framework.ExpectNoError(err, "kubectl podenv audit: make kubectl-podenv builds it")
	}
	var findings []struct{ Kind, Name string }
	framework.ExpectNoError(json.Unmarshal(out, &findings))
	var names []string
	for _, f := range findings {
		names = append(names, f.Kind+"/"+f.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
