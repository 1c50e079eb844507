package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"podenv.dev/hack/internal/progress"
)

// NodeComponents are what Swap, SetGates and Restart take.
var NodeComponents = []string{"kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// Changed says what an operation has made of a component of a node.
type Changed struct {
	Node, Component string
	// Is is the version that runs now.
	Is string
	// LeftOut are the gates asked for that the build does not know. They are set again
	// when one comes that does.
	LeftOut []string
}

// Swap makes a node run another build of a component, and returns once the component
// itself says that it is that version with the gates asked for, as far as the build
// knows them. A node that does so already is left alone. Gates are changed with the same
// restart, as SetGates does it; such gates the build has to know.
//
// As with all operations on nodes: if the component does not come up, or ctx ends, the
// node is made again what it was before the call, and the error says so.
func (c *Cluster) Swap(ctx context.Context, node string, b Build, changes map[string]*bool, r *progress.Reporter) (Changed, error) {
	return c.operate(ctx, node, b.Component, r, func(ctx context.Context, o *operation) error {
		o.wanted = with(o.wanted, changes)
		known, unknown, err := knownGates(ctx, b.start, o.component, o.wanted)
		if err != nil && gateRefusal(err) != "" {
			return fmt.Errorf("%s %s takes the gates %s no more: change them first with `podenv node gate`: %w", o.component, b.Version, gateFlag(o.wanted), err)
		}
		if err != nil {
			return fmt.Errorf("%s %s does not start: build it anew: %w", o.component, b.Version, err)
		}
		if err := refuseUnknown(o.component, b.Version, changes, unknown); err != nil {
			return err
		}
		o.to, o.result.LeftOut = state{SHA256: b.SHA256, Version: b.Version, Gates: known}, unknown
		if b.SHA256 != o.from.SHA256 {
			o.binary, o.image = b.Binary, b.Image
		}
		if !maps.Equal(known, o.from.Gates) {
			o.gates = known
		}
		return nil
	})
}

// SetGates changes gates of a component of a node: to true or false, or, where nil, to
// the default of the build. It returns once the component says that they are so.
func (c *Cluster) SetGates(ctx context.Context, node, component string, changes map[string]*bool, r *progress.Reporter) (Changed, error) {
	return c.operate(ctx, node, component, r, func(ctx context.Context, o *operation) error {
		if o.from.Version == "" {
			return fmt.Errorf("%s of node %s does not serve, so nobody can say which gates it knows: put back what ran before with `podenv node undo %[2]s`", component, node)
		}
		o.wanted = with(o.wanted, changes)
		known, unknown, err := knownGates(ctx, o.start, component, o.wanted)
		if err != nil {
			return fmt.Errorf("%s %s refuses the gates %s: %w", component, o.from.Version, gateFlag(o.wanted), err)
		}
		if err := refuseUnknown(component, o.from.Version, changes, unknown); err != nil {
			return err
		}
		o.to, o.result.LeftOut = o.from, unknown
		o.to.Gates = known
		if !maps.Equal(known, o.from.Gates) {
			o.gates = known
		}
		return nil
	})
}

// refuseUnknown returns an error if gates that are to be changed are unknown.
func refuseUnknown(component, version string, changes map[string]*bool, unknown []string) error {
	for _, name := range unknown {
		if _, asked := changes[name]; asked {
			return fmt.Errorf("%s %s does not know the gate %s: leave it out, or swap to a build that has it with `podenv node swap`", component, version, name)
		}
	}
	return nil
}

// Restart restarts a component of a node as it is, and returns once it serves again.
func (c *Cluster) Restart(ctx context.Context, node, component string, r *progress.Reporter) (Changed, error) {
	return c.operate(ctx, node, component, r, func(_ context.Context, o *operation) error {
		o.to, o.restart = o.from, true
		return nil
	})
}

// Undo makes a node what it was before the first operation on it: the builds and the
// configuration of its components, and schedulable if Drain has cordoned it. Pods that
// were evicted do not come back. A node that was never changed is left alone.
func (c *Cluster) Undo(ctx context.Context, node string, r *progress.Reporter) ([]Changed, error) {
	if _, err := c.node(ctx, node); err != nil {
		return nil, err
	}
	if err := c.reload(ctx); err != nil {
		return nil, err
	}
	var undone []Changed
	// The kubelet first: the others are what it runs.
	components := slices.SortedFunc(maps.Keys(c.record.Nodes[node].Components), func(a, b string) int {
		return slices.Index(NodeComponents, a) - slices.Index(NodeComponents, b)
	})
	for _, component := range components {
		changed, err := c.operate(ctx, node, component, r, func(_ context.Context, o *operation) error {
			o.to, o.original = o.recorded.Original, true
			return nil
		})
		if err != nil {
			return undone, err
		}
		undone = append(undone, changed)
	}
	if c.record.Nodes[node].Cordoned {
		return undone, c.Uncordon(ctx, node, r)
	}
	return undone, nil
}

// HasComponent returns an error unless node is one of the cluster and runs component.
func (c *Cluster) HasComponent(ctx context.Context, node, component string) error {
	n, err := c.node(ctx, node)
	if err != nil {
		return err
	}
	return n.has(component)
}

func (n Node) has(component string) error {
	if !slices.Contains(NodeComponents, component) && component != "etcd" {
		return fmt.Errorf("%q is not a component that node operations take: choose of %s", component, strings.Join(NodeComponents, ", "))
	}
	if component != "kubelet" && n.Role != "control-plane" {
		return fmt.Errorf("node %s is a %s and runs no %s: name a control plane", n.Name, n.Role, component)
	}
	return nil
}

// node returns the node of the cluster that is called name.
func (c *Cluster) node(ctx context.Context, name string) (Node, error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return Node{}, err
	}
	var names []string
	for _, n := range nodes {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	return Node{}, fmt.Errorf("%w: %s is no node of cluster %s: choose one of %s, or another cluster with --name", ErrNotOurs, name, c.name, strings.Join(names, ", "))
}

// reload reads the record again: another podenv may have worked on the cluster.
func (c *Cluster) reload(ctx context.Context) error {
	if c.record = c.docker.readRecord(ctx, c.name); c.record == nil {
		return fmt.Errorf("cluster %s is half-made: run `podenv up`", c.name)
	}
	return nil
}
