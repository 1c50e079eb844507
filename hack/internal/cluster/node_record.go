package cluster

import (
	"fmt"
	"maps"
)

// nodeRecord is what node operations have changed on one node.
type nodeRecord struct {
	Cordoned   bool                       `json:"cordoned,omitempty"`
	Components map[string]componentRecord `json:"components,omitempty"`
}

// componentRecord is what there is to know of a component that was changed. The files
// of the original are kept on the node.
type componentRecord struct {
	// Original is what ran before the first operation.
	Original state `json:"original"`
	// Gates are those asked for. A build that does not know some of them runs without;
	// the next one that does gets them again.
	Gates map[string]bool `json:"gates,omitempty"`
}

// component returns what is recorded of a component of a node.
func (r *record) component(node, component string) (componentRecord, bool) {
	c, ok := r.Nodes[node].Components[component]
	return c, ok
}

// changeComponent records a change of a component of a node, and returns how to take the
// record back.
func (r *record) changeComponent(node, component string, c componentRecord) (back func()) {
	return r.change(node, func(n *nodeRecord) {
		n.Components = maps.Clone(n.Components)
		if n.Components == nil {
			n.Components = make(map[string]componentRecord)
		}
		n.Components[component] = c
	})
}

// forgetComponent records that a component of a node is as it was.
func (r *record) forgetComponent(node, component string) (back func()) {
	return r.change(node, func(n *nodeRecord) {
		n.Components = maps.Clone(n.Components)
		delete(n.Components, component)
	})
}

// cordon records whether a node operation has cordoned the node.
func (r *record) cordon(node string, cordoned bool) (back func()) {
	return r.change(node, func(n *nodeRecord) { n.Cordoned = cordoned })
}

func (r *record) change(node string, f func(*nodeRecord)) (back func()) {
	before := r.Nodes
	n := before[node]
	f(&n)
	r.Nodes = maps.Clone(before)
	if r.Nodes == nil {
		r.Nodes = make(map[string]nodeRecord)
	}
	r.Nodes[node] = n
	if !n.Cordoned && len(n.Components) == 0 {
		delete(r.Nodes, node)
	}
	return func() { r.Nodes = before }
}

// unchanged returns an error if node operations have changed component on one of nodes.
func (r *record) unchanged(component string, nodes []Node) error {
	for _, n := range nodes {
		if _, changed := r.component(n.Name, component); changed {
			return fmt.Errorf("`podenv node` has changed the %s of node %s: run `podenv node undo %[2]s` first", component, n.Name)
		}
	}
	return nil
}
