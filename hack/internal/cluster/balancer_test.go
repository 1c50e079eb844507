package cluster

import (
	"errors"
	"slices"
	"testing"
)

// addSeveral adds a cluster of three control planes, and the load balancer before them on network.
func addSeveral(t *testing.T, f fakeDocker, ours bool, network string) {
	t.Helper()
	for _, name := range []string{"podenv-control-plane", "podenv-control-plane2", "podenv-control-plane3"} {
		f.add(t, fakeNode("podenv", name, "control-plane", ours))
	}
	balancer := fakeNode("podenv", "podenv-external-load-balancer", loadBalancer, false)
	balancer.Network = network
	f.add(t, balancer)
	f.write(t, "networks/"+network, "")
}

func TestTheLoadBalancerIsNoNode(t *testing.T) {
	f, l, e := newFakeDocker(t)
	addSeveral(t, f, true, "kind-podenv")
	c, err := Find(t.Context(), l, e, "podenv")
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := c.Nodes(t.Context())
	if err != nil || len(nodes) != 3 || slices.ContainsFunc(nodes, func(n Node) bool { return n.Role != "control-plane" }) {
		t.Errorf("nodes %v, error %v", nodes, err)
	}
	if err := c.Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if left := slices.Concat(f.names(t, "containers"), f.names(t, "networks")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestALoadBalancerOfPlainKindStays(t *testing.T) {
	f, l, e := newFakeDocker(t)
	addSeveral(t, f, false, "kind")
	if _, err := Find(t.Context(), l, e, "podenv"); !errors.Is(err, ErrNotOurs) {
		t.Errorf("the cluster of plain kind: %v", err)
	}
	c := open(l, e, "podenv")
	if n, err := c.docker.removeContainers(t.Context(), "podenv"); n != 0 || err != nil {
		t.Errorf("%d containers removed, error %v", n, err)
	}
}

func TestAClusterOfAnotherNumberOfControlPlanesDiffers(t *testing.T) {
	one, three := &record{ImageID: "sha256:1"}, &record{ImageID: "sha256:1", ControlPlanes: 3}
	if got, want := one.difference(three), "the number of its control planes is 1, not 3"; got != want {
		t.Errorf("the difference is %q, want %q", got, want)
	}
	if got := one.difference(&record{ImageID: "sha256:1", ControlPlanes: 1}); got != "" {
		t.Errorf("one is not %q", got)
	}
}
