// Package cluster drives kind: it creates a cluster with feature gates on, tells
// its own clusters from other people's, waits until one truly serves, swaps a
// component of running nodes for another build, and deletes a cluster without trace.
//
// Operations on one node, which upgrades, downgrades and version skew are made of, are
// Drain, Uncordon, Swap, SetGates, Restart and Undo. They and Push share one way of
// changing a component: put the change beside, turn to it, wait until the component itself
// says that it serves so, or go back.
//
// What a cluster was made from is recorded on its control-plane node, so that it
// can be reused, recreated and deleted by a checkout whose _output is gone.
package cluster
