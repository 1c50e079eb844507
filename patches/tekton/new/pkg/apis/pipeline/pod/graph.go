package pod

import "slices"

// graph finds the circles of nodes that need each other, as Tarjan's algorithm finds strongly connected
// components.
type graph struct {
	needs func(node int) []int
	found func(circle []int) // or a single node. What it needs was found before.

	visits, low []int // when a node was visited, counted from 1, and Tarjan's low link
	visited     int
	open        []int // visited, and not yet found
	isOpen      []bool
}

func newGraph(nodes int, needs func(node int) []int, found func(circle []int)) *graph {
	return &graph{needs: needs, found: found, visits: make([]int, nodes), low: make([]int, nodes), isOpen: make([]bool, nodes)}
}

func (g *graph) visit(node int) {
	if g.visits[node] != 0 {
		return
	}
	g.visited++
	g.visits[node], g.low[node] = g.visited, g.visited
	at := len(g.open)
	g.open, g.isOpen[node] = append(g.open, node), true
	for _, need := range g.needs(node) {
		g.visit(need)
		if g.isOpen[need] {
			g.low[node] = min(g.low[node], g.low[need])
		}
	}
	if g.low[node] == g.visits[node] {
		circle := slices.Clone(g.open[at:])
		for _, n := range circle {
			g.isOpen[n] = false
		}
		g.open = g.open[:at]
		g.found(circle)
	}
}
