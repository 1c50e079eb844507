package cluster

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// NodeState is what a component of a node is.
type NodeState struct {
	Node string `json:"node"`
	// Status is the node's as kubectl shows it: "Ready", "Ready,SchedulingDisabled".
	Status    string `json:"status"`
	Component string `json:"component"`
	// Version and Gates are what the component says of itself; Gates has those that
	// differ from the default of its build.
	Version string          `json:"version,omitempty"`
	Gates   map[string]bool `json:"gates,omitempty"`
	// LeftOut are gates asked for that the build does not know.
	LeftOut []string `json:"leftOut,omitempty"`
	// Changed says that node operations have changed the component.
	Changed bool `json:"changed"`
	// Problem says why the component cannot be asked.
	Problem string `json:"problem,omitempty"`
}

// NodeStates asks the components of all nodes, control planes first, what they are. A
// component that cannot be asked has a Problem and is no error.
func (c *Cluster) NodeStates(ctx context.Context) ([]NodeState, error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.reload(ctx); err != nil {
		return nil, err
	}
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	var states []NodeState
	for _, node := range nodes {
		status := nodeStatus(ctx, client, node.Name)
		for _, component := range NodeComponents {
			if component == "kubelet" || node.Role == "control-plane" {
				states = append(states, NodeState{Node: node.Name, Status: status, Component: component})
			}
		}
	}
	var g errgroup.Group
	for i := range states {
		s := &states[i]
		g.Go(func() error {
			if err := c.ask(ctx, client, s); err != nil {
				s.Problem = err.Error()
			}
			return ctx.Err()
		})
	}
	return states, g.Wait()
}

// ask fills in what the component of s says of itself.
func (c *Cluster) ask(ctx context.Context, client kubernetes.Interface, s *NodeState) error {
	recorded, changed := c.record.component(s.Node, s.Component)
	s.Changed = changed
	r, err := c.read(ctx, client, Node{Name: s.Node}, s.Component)
	if err != nil {
		return err
	}
	s.Version, s.Gates = r.version, make(map[string]bool)
	pid, err := c.pid(ctx, s.Node, s.Component)
	if err != nil {
		return err
	}
	help, err := c.Exec(ctx, s.Node, "/proc/"+pid+"/exe", "--help")
	if err != nil {
		return fmt.Errorf("the defaults of %s: %w", s.Component, err)
	}
	defaults := helpDefaults(help)
	for name, on := range r.gates {
		if byDefault, listed := defaults[name]; listed && on != byDefault {
			s.Gates[name] = on
		}
	}
	for name := range recorded.Gates {
		if _, known := r.gates[name]; !known {
			s.LeftOut = append(s.LeftOut, name)
		}
	}
	slices.Sort(s.LeftOut)
	return nil
}

// nodeStatus is the status of a node as kubectl shows it.
func nodeStatus(ctx context.Context, client kubernetes.Interface, name string) string {
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "Unknown"
	}
	status := "NotReady"
	if nodeReady(n).Status == corev1.ConditionTrue {
		status = "Ready"
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

// helpGate is how --help of a component lists a gate: "EnvFiles=true|false (ALPHA -
// default=false)". It leaves out those that are GA, which nobody need set.
var helpGate = regexp.MustCompile(`\b(\w+)=true\|false \(\w+ - default=(true|false)`)

func helpDefaults(help string) map[string]bool {
	defaults := make(map[string]bool)
	for _, m := range helpGate.FindAllStringSubmatch(help, -1) {
		defaults[m[1]] = m[2] == "true"
	}
	return defaults
}
