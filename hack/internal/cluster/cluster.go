package cluster

import (
	"context"
	"fmt"
	"os"
	"time"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
)

// Cluster is a kind cluster that podenv made.
type Cluster struct {
	name      string
	dir       string // its files under _output
	logs      string
	docker    docker
	layout    layout.Layout
	record    *record // nil for a half-made cluster
	waitReady time.Duration
}

// Node is a node of a cluster.
type Node struct {
	// Name is the node's name, in Kubernetes as in the container engine.
	Name string
	// Role is "control-plane" or "worker".
	Role string
}

// open returns the handle of a cluster, whether it exists or not.
func open(l layout.Layout, e *engine.Engine, name string) *Cluster {
	return &Cluster{name: name, dir: dir(l, name), logs: l.Logs(), docker: e.Docker, layout: l}
}

// Find returns the cluster of ours called name, also where it is half-made or only
// its traces are left, so that it can be deleted. ErrNotFound or ErrNotOurs is in
// the chain of the error where there is none.
func Find(ctx context.Context, l layout.Layout, e *engine.Engine, name string) (*Cluster, error) {
	if err := validateName(name); err != nil {
		return nil, err
	}
	c := open(l, e, name)
	found, err := c.docker.containers(ctx, name)
	if err != nil {
		return nil, err
	}
	if why := foreign(found); why != "" {
		return nil, fmt.Errorf("%w: %s: name one of podenv's with --name", ErrNotOurs, why)
	}
	if len(found) == 0 {
		if _, err := os.Stat(c.dir); err != nil {
			return nil, fmt.Errorf("%w: %s: make one with `podenv up`", ErrNotFound, name)
		}
		c.record = readSaved(c.dir)
		return c, nil
	}
	c.record = c.docker.readRecord(ctx, name)
	return c, nil
}

// Name is kind's name of the cluster.
func (c *Cluster) Name() string { return c.name }

// Context is the name of the cluster's context in a kubeconfig.
func (c *Cluster) Context() string { return "kind-" + c.name }

// Nodes lists the nodes, control planes first.
func (c *Cluster) Nodes(ctx context.Context) ([]Node, error) {
	found, err := c.docker.containers(ctx, c.name)
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of cluster %s: %w", c.name, err)
	}
	nodes := make([]Node, 0, len(found))
	for _, f := range found {
		if f.Marked {
			nodes = append(nodes, Node{Name: f.Name, Role: f.Role})
		}
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%w: %s has no nodes: make one with `podenv up`", ErrNotFound, c.name)
	}
	return nodes, nil
}

// Exec runs a command on a node and returns its standard output without the
// trailing newline. A failure is a *run.Error.
func (c *Cluster) Exec(ctx context.Context, node string, args ...string) (string, error) {
	return c.docker(ctx, append([]string{"exec", node}, args...)...).Output()
}

// Logs returns the journal of a systemd unit of a node, such as "kubelet".
func (c *Cluster) Logs(ctx context.Context, node, unit string) (string, error) {
	return c.Exec(ctx, node, "journalctl", "--no-pager", "--unit="+unit)
}

// lock makes sure that no other podenv of this checkout works on the cluster.
func lock(ctx context.Context, l layout.Layout, name string, step *progress.Step) (unlock func(), err error) {
	return lockfile.Lock(ctx, dir(l, name)+".lock", "that works on cluster "+name, step)
}
