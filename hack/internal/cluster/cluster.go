// Package cluster creates, finds and deletes kind clusters. It turns feature gates on, and
// waits until a cluster serves. It leaves clusters alone that another program, or another
// checkout of podenv, has created. Package node changes what runs on the nodes.
//
// A record on the control-plane node has the cluster's configuration and all changes to its
// nodes, so that a checkout without _output can use and delete the cluster.
package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// DefaultName is the default of --name.
const DefaultName = "podenv"

// collectTimeout limits collecting logs: a node whose docker commands hang must not keep a
// failed run from ending.
const collectTimeout = time.Minute

// Cluster is a kind cluster that podenv created.
type Cluster struct {
	name   string
	dir    string // its files under _output
	layout layout.Layout
	docker docker
	record *record // nil for a half-made cluster
}

// Node is a node of a cluster.
type Node struct {
	// Name is the node's name, in Kubernetes as in the container engine.
	Name string
	// Role is "control-plane" or "worker".
	Role string
}

// open returns the handle of a cluster, which need not exist.
func open(l layout.Layout, e *engine.Engine, name string) *Cluster {
	return &Cluster{name: name, dir: filepath.Join(l.Output(), "clusters", name), layout: l, docker: e.Docker}
}

// Find returns the cluster called name. To allow deletion, it also returns a half-made cluster, and one of
// which only files are left. ErrNotFound or ErrNotOurs is in the chain of the error if this checkout has none.
func Find(ctx context.Context, l layout.Layout, e *engine.Engine, name string) (*Cluster, error) {
	if err := ValidateName(name); err != nil {
		return nil, err
	}
	c := open(l, e, name)
	found, err := c.docker.containers(ctx, name)
	if err != nil {
		return nil, err
	}
	if why := foreign(found); why != "" {
		return nil, fmt.Errorf("%w: %s: choose one that podenv made with --name", ErrNotOurs, why)
	}
	if len(found) > 0 {
		c.record = c.docker.readRecord(ctx, name)
		return c, c.checkOwner()
	}
	if _, err := os.Stat(c.dir); err != nil {
		return nil, c.notFound()
	}
	c.record = readRecordFile(c.dir)
	return c, nil
}

func (c *Cluster) notFound() error {
	return fmt.Errorf("%w: %s: make one with `%s`", ErrNotFound, c.name, c.command("up"))
}

// checkOwner returns an error if another checkout that still exists made the cluster.
func (c *Cluster) checkOwner() error {
	if c.record == nil || c.record.Checkout == "" || c.record.Checkout == c.layout.Root {
		return nil
	}
	theirs, err := os.Stat(c.record.Checkout)
	if err != nil {
		return nil //nolint:nilerr // with that checkout gone, nobody else can delete the cluster
	}
	if ours, err := os.Stat(c.layout.Root); err == nil && os.SameFile(ours, theirs) {
		return nil
	}
	return fmt.Errorf("%w: the checkout %s made cluster %s: run podenv there, or choose another name with --name", ErrNotOurs, c.record.Checkout, c.name)
}

// command returns the podenv command line of a verb for this cluster.
func (c *Cluster) command(verb string) string {
	if c.name == DefaultName {
		return "podenv " + verb
	}
	return "podenv " + verb + " --name " + c.name
}

// Name returns kind's name of the cluster.
func (c *Cluster) Name() string { return c.name }

// Gates returns the gates of a cluster that Create returned.
func (c *Cluster) Gates() map[string]bool { return c.record.Gates }

// Context returns the name of the cluster's kubeconfig context, and of its docker network.
func (c *Cluster) Context() string { return "kind-" + c.name }

// Nodes lists the nodes, control planes first.
func (c *Cluster) Nodes(ctx context.Context) ([]Node, error) {
	found, err := c.docker.containers(ctx, c.name)
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of cluster %s: %w", c.name, err)
	}
	nodes := make([]Node, 0, len(found))
	for _, f := range found {
		if f.Marked && f.Role != loadBalancer {
			nodes = append(nodes, Node{Name: f.Name, Role: f.Role})
		}
	}
	if len(nodes) == 0 {
		return nil, c.notFound()
	}
	return nodes, nil
}

// Docker prepares the docker command with args.
func (c *Cluster) Docker(ctx context.Context, args ...string) *run.Cmd { return c.docker(ctx, args...) }

// Exec runs a command on a node and returns its standard output without the
// trailing newline. A failure is a *run.Error.
func (c *Cluster) Exec(ctx context.Context, node string, args ...string) (string, error) {
	return c.docker(ctx, append([]string{"exec", node}, args...)...).Output()
}

// examplesMark is a file on a node of a cluster on which the examples have run.
const examplesMark = "/kind/podenv-examples"

// ExamplesRan reports whether the examples have run on the cluster.
func (c *Cluster) ExamplesRan(ctx context.Context) bool {
	_, err := c.Exec(ctx, controlPlane(c.name), "test", "-e", examplesMark)
	return err == nil
}

// SaveExamplesRan saves that they have.
func (c *Cluster) SaveExamplesRan(ctx context.Context) error {
	_, err := c.Exec(ctx, controlPlane(c.name), "touch", examplesMark)
	return err
}

// Lock locks the cluster against every other podenv process of this user, in any checkout.
func (c *Cluster) Lock(ctx context.Context, step *progress.Step) (unlock func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no place for the lock of cluster %s: %w: set HOME", c.name, err)
	}
	return lockfile.Lock(ctx, filepath.Join(cache, "podenv", "cluster-"+c.name+".lock"), "that works on cluster "+c.name, step)
}

// CollectLogs writes the logs of each node to the folder dir: the journal, the kubelet's and
// containerd's part of it, the logs of all containers, and docker inspect of the node.
func (c *Cluster) CollectLogs(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- provider(nil).CollectLogs(c.name, dir) }()
	var err error
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-done:
		// kind fails where it cannot list images with crictl, which a node need not have.
		if logs, _ := filepath.Glob(filepath.Join(dir, "*", "kubelet.log")); err == nil || len(logs) > 0 {
			return nil
		}
	}
	return fmt.Errorf("collecting the logs of cluster %s in %s: %w", c.name, dir, explain(err))
}
