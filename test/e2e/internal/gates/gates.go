// Package gates reads, from a running cluster, which feature gates are on.
package gates

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"
)

// metric is how a Kubernetes component shows its gates: a gauge with the labels name
// and stage, whose value is 1 for a gate that is on.
const metric = "kubernetes_feature_enabled"

// State is what a component says of one gate.
type State string

// The states of a gate.
const (
	On      State = "on"
	Off     State = "off"
	Unknown State = "unknown" // the component has no such gate
)

// Required are the gates of --podenv.require-gates.
var Required list

type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *list) Set(value string) error {
	*l = nil
	if value != "" {
		*l = strings.Split(value, ",")
	}
	return nil
}

// answers remembers, for each gate, what missing or missingInKubelets said.
var answers sync.Map

// Require skips the running spec unless the API server and every node that takes pods
// have the gate on. It fails the spec instead if the run's flags require the gate, so
// that a cluster which lost its gates cannot pass as green. It asks the cluster once
// per process; a suite that flips gates reads them with OfAPIServer and OfKubelet.
func Require(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	require(ctx, gate, gate, missing)
}

// require asks the cluster where gate is missing, and keeps the answer under key.
func require(ctx context.Context, gate, key string, missing func(context.Context, kubernetes.Interface, string) string) {
	ginkgo.GinkgoHelper()
	answer, known := answers.Load(key)
	if !known {
		answer = missing(ctx, newClient(), gate)
		answers.Store(key, answer)
	}
	why := answer.(string)
	if why == "" {
		return
	}
	if slices.Contains(Required, gate) {
		framework.Failf("%s, and --podenv.require-gates asks for it", why)
	}
	ginkgo.Skip(why)
}

// RequireOff skips the running spec where the API server has the gate on.
func RequireOff(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	state, err := OfAPIServer(ctx, newClient(), gate)
	framework.ExpectNoError(err)
	if state == On {
		ginkgo.Skip(fmt.Sprintf("the gate %s is on in the API server", gate))
	}
}

// newClient needs no framework.Framework, which makes a namespace for each spec, also
// for one that is skipped.
func newClient() kubernetes.Interface {
	ginkgo.GinkgoHelper()
	config, err := framework.LoadConfig()
	framework.ExpectNoError(err)
	client, err := kubernetes.NewForConfig(config)
	framework.ExpectNoError(err)
	return client
}

// missing says where gate is not on, or nothing where it is on everywhere.
func missing(ctx context.Context, client kubernetes.Interface, gate string) string {
	state, err := OfAPIServer(ctx, client, gate)
	framework.ExpectNoError(err)
	if state != On {
		return fmt.Sprintf("the gate %s is %s in the API server", gate, state)
	}
	return missingInKubelets(ctx, client, gate)
}

// missingInKubelets says on which node gate is not on in the kubelet, or nothing where
// it is on everywhere.
func missingInKubelets(ctx context.Context, client kubernetes.Interface, gate string) string {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	for _, node := range nodes.Items {
		if !TakesPods(node) {
			continue
		}
		state, err := OfKubelet(ctx, client, node.Name, gate)
		framework.ExpectNoError(err)
		if state != On {
			return fmt.Sprintf("the gate %s is %s in the kubelet of node %s", gate, state, node.Name)
		}
	}
	return ""
}

// TakesPods reports whether the scheduler places ordinary pods on node.
func TakesPods(node v1.Node) bool {
	return !node.Spec.Unschedulable && !slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool {
		return taint.Effect != v1.TaintEffectPreferNoSchedule
	})
}

// OfAPIServer returns what the API server says of gate.
func OfAPIServer(ctx context.Context, client kubernetes.Interface, gate string) (State, error) {
	return read(ctx, client, gate, "/metrics")
}

// OfKubelet returns what the kubelet of node says of gate.
func OfKubelet(ctx context.Context, client kubernetes.Interface, node, gate string) (State, error) {
	return read(ctx, client, gate, "/api/v1/nodes/"+node+"/proxy/metrics")
}

func read(ctx context.Context, client kubernetes.Interface, gate, path string) (State, error) {
	text, err := client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the gate %s from %s: %w", gate, path, err)
	}
	state, err := parse(string(text), gate)
	if err != nil {
		return "", fmt.Errorf("reading the gate %s from %s: %w", gate, path, err)
	}
	return state, nil
}

// parse finds gate in metrics of the text format.
func parse(metrics, gate string) (State, error) {
	state, isComponent := Unknown, false
	for line := range strings.Lines(metrics) {
		labels, ok := strings.CutPrefix(line, metric+"{")
		if !ok {
			continue
		}
		isComponent = true
		if !strings.Contains(labels, `name="`+gate+`"`) {
			continue
		}
		state = Off
		if strings.HasSuffix(strings.TrimSpace(line), "} 1") {
			state = On
		}
	}
	if !isComponent {
		return "", fmt.Errorf("no metric %s: this is no Kubernetes component of v1.26 or later", metric)
	}
	return state, nil
}
