// Package node changes what runs on the nodes of a cluster: it swaps builds of components,
// sets their feature gates, restarts them, drains nodes, and undoes all of that. Upgrades,
// downgrades and version skew are made of these operations.
//
// Every change of a component takes the same steps: stage the new files beside the old ones,
// apply them, wait until the component reports that it serves as requested, or else revert.
// The record of the cluster has what ran before the first change.
package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/progress"
)

// Components are the components that Swap, SetGates and Restart accept.
var Components = []string{"kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// Changed is the result of an operation on a component of a node.
type Changed struct {
	Node, Component string
	// Version is the one that runs now.
	Version string
	// LeftOut are requested gates that the build does not know. The next build that knows them gets them again.
	LeftOut []string
}

// Swap makes a node run another build of a component, and returns once the component reports that version with
// the requested gates that the build knows. A node that already does is left alone. The changes of gates are
// made with the same restart, as by SetGates; the build must know these gates.
//
// As in all operations on nodes, if the component does not come up or ctx ends, the node is
// restored to its state before the call, and the error says so.
func Swap(ctx context.Context, c *cluster.Cluster, node string, b Build, changes map[string]*bool, r *progress.Reporter) (Changed, error) {
	return first(operate(ctx, c, b.Component, []string{node}, node, r, swapTo(b, changes)))
}

// Push swaps a component on all nodes that have it. On a node that an operation has changed,
// the record keeps the original.
func Push(ctx context.Context, c *cluster.Cluster, b Build, r *progress.Reporter) error {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, n := range nodes {
		if checkRuns(n, b.Component) == nil {
			names = append(names, n.Name)
		}
	}
	_, err = operate(ctx, c, b.Component, names, "push "+b.Component, r, swapTo(b, nil))
	return err
}

func swapTo(b Build, changes map[string]*bool) plan {
	return func(ctx context.Context, i *instance) error {
		i.to = cluster.State{SHA256: b.SHA256, Version: b.Version}
		err := i.planGates(ctx, b.start, changes)
		if err != nil && featuregates.Refusal(err) != "" {
			return fmt.Errorf("%s %s no longer takes the gates %s: change them first with `podenv node gate`: %w", b.Component, b.Version, featuregates.Flag(i.wanted), err)
		}
		if err != nil {
			return fmt.Errorf("%s %s does not start: fix it and try again: %w", b.Component, b.Version, err)
		}
		if i.to.SHA256 != i.from.SHA256 {
			i.binary, i.image = b.Binary, b.Image
		}
		return refuseUnknown(b.Component, b.Version, changes, i.leftOut)
	}
}

// planGates plans changes of the gates of a build, which start runs.
func (i *instance) planGates(ctx context.Context, start func(context.Context, ...string) error, changes map[string]*bool) (err error) {
	i.wanted = applyGateChanges(i.recorded.Gates, changes)
	i.to.Gates, i.leftOut, err = knownGates(ctx, start, i.target.name, i.wanted)
	if err == nil && !maps.Equal(i.to.Gates, i.from.Gates) {
		i.gates = i.to.Gates
	}
	return err
}

// SetGates changes gates of a component of a node: to true or false, or, where nil, to
// the default of the build. It returns once the component reports them so.
func SetGates(ctx context.Context, c *cluster.Cluster, node, component string, changes map[string]*bool, r *progress.Reporter) (Changed, error) {
	return first(operate(ctx, c, component, []string{node}, node, r, func(ctx context.Context, i *instance) error {
		if i.from.Version == "" {
			return fmt.Errorf("%s of node %s does not serve, so it cannot say which gates it knows: restore what ran before with `podenv node undo %[2]s`", component, node)
		}
		i.to = i.from
		if err := i.planGates(ctx, i.target.start, changes); err != nil {
			return fmt.Errorf("%s %s refuses the gates %s: %w", component, i.from.Version, featuregates.Flag(i.wanted), err)
		}
		return refuseUnknown(component, i.from.Version, changes, i.leftOut)
	}))
}

func refuseUnknown(component, version string, changes map[string]*bool, unknown []string) error {
	for _, name := range unknown {
		if _, asked := changes[name]; asked {
			return fmt.Errorf("%s %s does not know the gate %s: leave it out, or swap to a build that has it with `podenv node swap`", component, version, name)
		}
	}
	return nil
}

// Restart restarts a component of a node, and returns once it serves again.
func Restart(ctx context.Context, c *cluster.Cluster, node, component string, r *progress.Reporter) (Changed, error) {
	return first(operate(ctx, c, component, []string{node}, node, r, func(_ context.Context, i *instance) error {
		i.to, i.restart = i.from, true
		return nil
	}))
}

// Undo restores a node to its state before the first operation on it: the builds and the configuration of its
// components, also after Push. It uncordons the node if Drain has cordoned it, and restores kube-proxy on all
// nodes. Evicted pods do not come back. A node that was never changed is left alone, and changed is false.
func Undo(ctx context.Context, c *cluster.Cluster, node string, r *progress.Reporter) (undone []Changed, changed bool, err error) {
	if _, err := clusterNode(ctx, c, node); err != nil {
		return nil, false, err
	}
	changes, err := c.Changes(ctx)
	if err != nil {
		return nil, false, err
	}
	// The kubelet first: it runs most of the others.
	components := slices.SortedFunc(maps.Keys(changes[node].Components), func(a, b string) int {
		return slices.Index(allComponents, a) - slices.Index(allComponents, b)
	})
	for _, component := range components {
		nodes := []string{node}
		if component == "kube-proxy" {
			nodes = slices.Collect(maps.Keys(changes)) // a push has changed it on all nodes
		}
		done, err := operate(ctx, c, component, nodes, node, r, func(_ context.Context, i *instance) error {
			i.to, i.original = i.recorded.Original, true
			return nil
		})
		if err != nil {
			return undone, true, err
		}
		undone = append(undone, done...)
	}
	if changes[node].Cordoned {
		return undone, true, Uncordon(ctx, c, node, r)
	}
	return undone, len(undone) > 0, nil
}

// CheckRuns returns an error unless node belongs to the cluster and runs component.
func CheckRuns(ctx context.Context, c *cluster.Cluster, node, component string) error {
	n, err := clusterNode(ctx, c, node)
	if err != nil {
		return err
	}
	return checkRuns(n, component)
}

func checkRuns(n cluster.Node, component string) error {
	if !slices.Contains(onEveryNode, component) && n.Role != "control-plane" {
		return fmt.Errorf("node %s is a %s and runs no %s: name a control plane", n.Name, n.Role, component)
	}
	return nil
}

func clusterNode(ctx context.Context, c *cluster.Cluster, name string) (cluster.Node, error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return cluster.Node{}, err
	}
	return findNode(nodes, name, c.Name())
}

func findNode(nodes []cluster.Node, name, clusterName string) (cluster.Node, error) {
	var names []string
	for _, n := range nodes {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	return cluster.Node{}, fmt.Errorf("%w: %s is not a node of cluster %s: choose one of %s, or another cluster with --name", cluster.ErrNotOurs, name, clusterName, strings.Join(names, ", "))
}

func first(changed []Changed, err error) (Changed, error) {
	if err != nil || len(changed) == 0 {
		return Changed{}, err
	}
	return changed[0], nil
}
