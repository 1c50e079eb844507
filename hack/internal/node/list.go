package node

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/jsonout"
)

// State describes a component of a node.
type State struct {
	Node string `json:"node"`
	// Status is the node's as kubectl shows it: "Ready", "Ready,SchedulingDisabled".
	Status    string `json:"status"`
	Component string `json:"component"`
	// Version and Gates are from the component's metrics. Gates has only those that differ
	// from the default of its build.
	Version string          `json:"version,omitempty"`
	Gates   map[string]bool `json:"gates,omitempty"`
	// LeftOut are requested gates that the build does not know.
	LeftOut []string `json:"leftOut,omitempty"`
	// Changed says that a push or a node operation has changed the component.
	Changed bool `json:"changed"`
	// Problem says why the component cannot be queried.
	Problem string `json:"problem,omitempty"`
}

// List queries the components of all nodes, control planes first. A component that cannot be
// queried has a Problem; that is no error.
func List(ctx context.Context, c *cluster.Cluster) ([]State, error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	changes, err := c.Changes(ctx)
	if err != nil {
		return nil, err
	}
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	var states []State
	for _, node := range nodes {
		status := nodeStatus(ctx, client, node.Name)
		for _, component := range Components {
			if checkRuns(node, component) == nil {
				states = append(states, State{Node: node.Name, Status: status, Component: component})
			}
		}
	}
	var g errgroup.Group
	for i := range states {
		s := &states[i]
		g.Go(func() error {
			recorded, changed := changes[s.Node].Components[s.Component]
			s.Changed = changed
			if err := s.query(ctx, &target{Cluster: c, client: client, node: s.Node, name: s.Component}, recorded.Gates); err != nil {
				s.Problem = err.Error()
			}
			return ctx.Err()
		})
	}
	return states, g.Wait()
}

// query fills in what the component reports. LeftOut is computed from the requested gates.
func (s *State) query(ctx context.Context, t *target, requested map[string]bool) error {
	r, err := t.runningState(ctx)
	if err != nil {
		return err
	}
	s.Version, s.Gates = r.version, make(map[string]bool)
	pid, err := t.pid(ctx)
	if err != nil {
		return err
	}
	help, err := t.exec(ctx, "/proc/"+pid+"/exe", "--help")
	if err != nil {
		return fmt.Errorf("the defaults of %s: %w", s.Component, err)
	}
	inHelp := GatesInHelp(help)
	for name, on := range r.gates {
		if g, listed := inHelp[name]; listed && on != g.Default {
			s.Gates[name] = on
		}
	}
	for name := range requested {
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
	if cluster.NodeReady(n).Status == corev1.ConditionTrue {
		status = "Ready"
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

// WriteTable writes states as a table with a header. Each gate has its own line, and problems
// are listed below the table: one long cell would make all rows wide.
func WriteTable(w io.Writer, states []State) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tSTATUS\tCOMPONENT\tVERSION\tCHANGED\tGATES")
	var problems []string
	for _, s := range states {
		version, set := s.Version, featuregates.List(s.Gates)
		for _, name := range s.LeftOut {
			set = append(set, name+" is unknown")
		}
		if s.Problem != "" {
			version = "?"
			problems = append(problems, fmt.Sprintf("%s of %s: %s", s.Component, s.Node, strings.Join(strings.Fields(s.Problem), " ")))
		}
		if len(set) == 0 {
			set = []string{"-"}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Node, s.Status, s.Component, version, yesNo(s.Changed), set[0])
		for _, gate := range set[1:] {
			fmt.Fprintf(t, "\t\t\t\t\t%s\n", gate)
		}
	}
	err := t.Flush()
	if len(problems) > 0 {
		fmt.Fprintln(w, "\n"+strings.Join(problems, "\n"))
	}
	return err
}

// WriteTSV writes a line for each state, without a header: node, status, component,
// version, gates, gates left out, changed.
func WriteTSV(w io.Writer, states []State) error {
	return jsonout.WriteTSV(w, states, func(s State) []any {
		version := s.Version
		if s.Problem != "" {
			version = strings.Join(strings.Fields(s.Problem), " ")
		}
		return []any{s.Node, s.Status, s.Component, version, featuregates.Flag(s.Gates), strings.Join(s.LeftOut, ","), yesNo(s.Changed)}
	})
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
