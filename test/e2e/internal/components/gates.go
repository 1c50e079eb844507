package components

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/featuregates"
)

// RequiredGates are the gates of --podenv.require-gates.
var RequiredGates []string

// answers caches the results of notOn in this process.
var answers sync.Map

// RequireGate skips the running spec unless the API server and every schedulable node have
// the gate on. If --podenv.require-gates has the gate, it fails the spec instead: otherwise a
// cluster that lost its gates would pass. It asks the cluster once per process, so a suite that
// changes gates uses GateAt instead.
func RequireGate(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	require(ctx, gate, true)
}

// RequireGateInKubelets is RequireGate for a gate that only kubelets act on: its state in
// the API server does not matter.
func RequireGateInKubelets(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	require(ctx, gate, false)
}

func require(ctx context.Context, gate string, inServer bool) {
	ginkgo.GinkgoHelper()
	key := fmt.Sprint(gate, inServer)
	answer, cached := answers.Load(key)
	if !cached {
		answer = notOn(ctx, newClient(), gate, inServer)
		answers.Store(key, answer)
	}
	switch why := answer.(string); {
	case why == "":
	case slices.Contains(RequiredGates, gate):
		framework.Failf("%s, and --podenv.require-gates asks for it", why)
	default:
		ginkgo.Skip(why)
	}
}

// RequireGateOff skips the running spec where the API server has the gate on.
func RequireGateOff(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	state, err := GateAt(ctx, newClient(), gate, APIServerMetrics)
	framework.ExpectNoError(err)
	if state == featuregates.GateOn {
		ginkgo.Skip(fmt.Sprintf("the gate %s is on in the API server", gate))
	}
}

// RequireGateOffInKubelets skips the running spec where a node that takes pods has a
// kubelet with the gate on. A kubelet that has no such gate has it off.
func RequireGateOffInKubelets(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	for node, state := range gateOfKubelets(ctx, newClient(), gate) {
		if state == featuregates.GateOn {
			ginkgo.Skip(fmt.Sprintf("the gate %s is on in the kubelet of node %s", gate, node))
		}
	}
}

// CheckRequiredGates returns an error, with what to do, for the first gate of
// --podenv.require-gates that is not on everywhere: one error instead of one per spec.
func CheckRequiredGates(ctx context.Context, client kubernetes.Interface) error {
	for _, gate := range RequiredGates {
		if why := notOn(ctx, client, gate, true); why != "" {
			return fmt.Errorf("%s, and --podenv.require-gates asks for it: `podenv node list` shows what each node runs, and `podenv node undo NODE` makes a node what it was", why)
		}
	}
	return nil
}

// newClient returns a client without a framework.Framework, which would create a namespace even
// for a spec that is skipped.
func newClient() kubernetes.Interface {
	ginkgo.GinkgoHelper()
	client, err := framework.LoadClientset()
	framework.ExpectNoError(err)
	return client
}

// notOn names a component where gate is not on; it returns "" where it is on everywhere.
func notOn(ctx context.Context, client kubernetes.Interface, gate string, inServer bool) string {
	if inServer {
		state, err := GateAt(ctx, client, gate, APIServerMetrics)
		framework.ExpectNoError(err)
		if state != featuregates.GateOn {
			return fmt.Sprintf("the gate %s is %s in the API server", gate, state)
		}
	}
	for node, state := range gateOfKubelets(ctx, client, gate) {
		if state != featuregates.GateOn {
			return fmt.Sprintf("the gate %s is %s in the kubelet of node %s", gate, state, node)
		}
	}
	return ""
}

func gateOfKubelets(ctx context.Context, client kubernetes.Interface, gate string) map[string]featuregates.GateState {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	states := map[string]featuregates.GateState{}
	for _, node := range slices.DeleteFunc(nodes.Items, func(node v1.Node) bool { return !TakesPods(node) }) {
		states[node.Name], err = GateAt(ctx, client, gate, KubeletMetrics(node.Name))
		framework.ExpectNoError(err)
	}
	return states
}

// TakesPods reports whether the scheduler places ordinary pods on node.
func TakesPods(node v1.Node) bool {
	return !node.Spec.Unschedulable && !slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool {
		return taint.Effect != v1.TaintEffectPreferNoSchedule
	})
}

// GateAt returns the state of gate in the component whose metrics are at path: APIServerMetrics,
// or KubeletMetrics of a node.
func GateAt(ctx context.Context, client kubernetes.Interface, gate, path string) (featuregates.GateState, error) {
	metrics, err := get(ctx, client, path)
	if err != nil {
		return "", err
	}
	state, err := gateIn(metrics, gate)
	if err != nil {
		return "", fmt.Errorf("reading the gate %s from %s: %w", gate, path, err)
	}
	return state, nil
}

func gateIn(metrics []byte, name string) (featuregates.GateState, error) {
	gates, err := featuregates.OnFromMetrics(bytes.NewReader(metrics))
	on, known := gates[name]
	if !known {
		return featuregates.GateUnknown, err
	}
	return map[bool]featuregates.GateState{false: featuregates.GateOff, true: featuregates.GateOn}[on], err
}

// HasUpstreamAPI reports whether the release of the API server has the API behind gate from
// upstream. Then upstream's validation applies instead of this branch's.
func HasUpstreamAPI(gate string) bool {
	ginkgo.GinkgoHelper()
	return !gateOfThisRelease(gate).Carried
}

// Locked reports whether gate is locked to its default in the release of the API server.
func Locked(gate string) bool {
	ginkgo.GinkgoHelper()
	return gateOfThisRelease(gate).Spec.LockToDefault
}

// AtLeast reports whether the API server is of minor ("v1.35") or newer.
func AtLeast(minor string) bool {
	ginkgo.GinkgoHelper()
	release, err := version.ParseGeneric(ServerVersion())
	framework.ExpectNoError(err)
	return release.AtLeast(version.MustParseGeneric(minor))
}

func gateOfThisRelease(gate string) featuregates.State {
	ginkgo.GinkgoHelper()
	release := ServerVersion()
	state, known := featuregates.StateIn(release, featuregate.Feature(gate))
	if !known {
		framework.Failf("featuregates has no gate %s for %s", gate, release)
	}
	return state
}

// ServerVersion is the version that the API server reports.
func ServerVersion() string {
	ginkgo.GinkgoHelper()
	info, err := newClient().Discovery().ServerVersion()
	framework.ExpectNoError(err, "read the version of the API server")
	return info.GitVersion
}
