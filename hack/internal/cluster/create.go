package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/gates"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

const (
	// readyTime is how long a cluster may take to serve once kind has made it, or once its
	// nodes were started.
	readyTime = 3 * time.Minute
	// reuseTime is how long one may take whose nodes run already.
	reuseTime = time.Minute
)

// Create returns a cluster as cfg describes, with the images on its nodes, that serves.
//
// A cluster that exists and was made from the same is used as it is; its nodes are started
// if they were stopped. One that differs or does not serve is recreated if nothing runs on
// it or cfg.Recreate is set, and else ErrInUse is in the chain of the error. Others are
// ErrNotOurs for a cluster of somebody else, and remedy.ErrPortInUse.
//
// If it fails to make a cluster, or ctx ends, no node is left; the logs of the nodes of a
// failed cluster are kept below _output/logs.
func Create(ctx context.Context, l layout.Layout, e *engine.Engine, cfg Config, step *progress.Step) (*Cluster, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := open(l, e, cfg.Name)
	unlock, err := c.Lock(ctx, step)
	if err != nil {
		return nil, err
	}
	defer unlock()
	want, err := c.recordFor(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	found, err := c.docker.containers(ctx, c.name)
	if err != nil {
		return nil, err
	}
	if why := foreign(found); why != "" {
		return nil, fmt.Errorf("%w: %s: choose another name with --name", ErrNotOurs, why)
	}
	var differs error // why the cluster that exists is not returned
	if len(found) > 0 {
		c.record = c.docker.readRecord(ctx, c.name)
		if err := c.checkOwner(); err != nil {
			return nil, err
		}
		if differs = c.reuse(ctx, found, want, cfg.Images, step); differs == nil {
			step.Cached("as it was")
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if err := c.checkGates(ctx, &cfg, step); err != nil {
		return nil, err
	}
	if differs == nil || c.record != nil && c.record.APIServerPort != cfg.APIServerPort {
		// The nodes do not hold the port: nothing is deleted in vain.
		if err := portFree(cfg.APIServerPort); err != nil {
			return nil, err
		}
	}
	if differs != nil {
		if err := c.checkUnused(ctx, differs, cfg.Recreate); err != nil {
			return nil, err
		}
		step.Now("recreating the cluster: %v", differs)
		if err := c.delete(ctx, step); err != nil {
			return nil, fmt.Errorf("deleting cluster %s, because %w: %w", c.name, differs, err)
		}
	}
	c.record = want
	if err := c.make(ctx, &cfg, step); err != nil {
		return nil, c.undo(ctx, err, step)
	}
	return c, nil
}

// recordFor is the record of a cluster made from cfg, with its context where kubectl looks.
func (c *Cluster) recordFor(ctx context.Context, cfg *Config) (*record, error) {
	id, err := c.docker.imageID(ctx, cfg.NodeImage)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := filepath.Abs(clientcmd.NewDefaultPathOptions().GetDefaultFilename())
	if err != nil {
		return nil, err
	}
	return &record{
		Checkout:      c.layout.Root,
		NodeImage:     cfg.NodeImage,
		ImageID:       id,
		Workers:       cfg.Workers,
		Gates:         maps.Clone(cfg.Gates),
		Verbosity:     cfg.Verbosity,
		Kubeconfig:    kubeconfig,
		APIServerPort: cfg.APIServerPort,
	}, nil
}

// errHalfMade is the reason to recreate a cluster that has no record.
var errHalfMade = errors.New("a run that was interrupted left it half-made")

// reuse makes the cluster that exists serve as want describes. Its error says why it does
// not.
func (c *Cluster) reuse(ctx context.Context, found []container, want *record, images []string, step *progress.Step) error {
	if c.record == nil {
		return errHalfMade
	}
	if why := c.record.differs(want); why != "" {
		return errors.New(why)
	}
	if n := 1 + want.Workers; len(found) != n {
		return fmt.Errorf("it has %d of its %d nodes left", len(found), n)
	}
	limit := reuseTime
	for _, node := range found {
		if !node.Running {
			step.Now("starting node %s, which was stopped", node.Name)
			if err := c.docker(ctx, "start", node.Name).Run(); err != nil {
				return err
			}
			limit = readyTime
		}
	}
	step.Now("checking that cluster %s serves", c.name)
	changed := c.record.Kubeconfig != want.Kubeconfig
	c.record.Kubeconfig = want.Kubeconfig
	switched, err := c.exportKubeconfig(step)
	if err != nil {
		return err
	}
	if err := c.waitServing(ctx, limit, step); err != nil {
		return err
	}
	if err := c.LoadImages(ctx, images, step); err != nil {
		return err
	}
	if changed || switched {
		return c.save(ctx)
	}
	return nil
}

// make creates the cluster. The record, which says that it is whole, comes last.
func (c *Cluster) make(ctx context.Context, cfg *Config, step *progress.Step) error {
	c.record.PreviousContext = currentContext(c.record.Kubeconfig)
	if err := c.provision(ctx, cfg, step); err != nil {
		return err
	}
	if err := c.writeKubeconfig(step); err != nil {
		return err
	}
	if err := c.LoadImages(ctx, cfg.Images, step); err != nil {
		return err
	}
	if err := c.WaitServing(ctx, step); err != nil {
		return err
	}
	return c.save(ctx)
}

// undo deletes what exists of a cluster that was not finished because of err, and keeps
// the logs of its nodes unless a person stopped it.
func (c *Cluster) undo(ctx context.Context, err error, step *progress.Step) error {
	err = fmt.Errorf("creating cluster %s: %w", c.name, err)
	if ctx.Err() == nil {
		logs := filepath.Join(c.layout.Logs(), "cluster-"+c.name)
		step.Now("collecting the nodes' logs")
		if os.RemoveAll(logs) == nil && c.CollectLogs(ctx, logs) == nil {
			err = fmt.Errorf("%w\n  logs of its nodes: %s", err, logs)
			if line := kubeletFailure(logs); line != "" {
				err = fmt.Errorf("%w\n  %s", err, line)
			}
		}
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*cleanupTime)
	defer cancel()
	if swept := c.docker.sweep(cleanup, c.name); swept != nil {
		err = errors.Join(err, fmt.Errorf("deleting its nodes: %w: run `%s`", swept, c.command("down")))
	}
	if deleted := c.delete(cleanup, step); deleted != nil {
		err = errors.Join(err, deleted)
	}
	return err
}

// checkGates starts the node image's kubelet with the gates: components that do not take
// them would crash until kubeadm gives up, minutes later. Only what the kubelet says of a
// gate counts, since without a configuration it does not start.
func (c *Cluster) checkGates(ctx context.Context, cfg *Config, step *progress.Step) error {
	if len(cfg.Gates) == 0 {
		return nil
	}
	step.Now("checking that the release knows the gates")
	flag := gates.Flag(cfg.Gates)
	err := c.docker(ctx, "run", "--rm", "--network=none", "--entrypoint=kubelet", cfg.NodeImage,
		"--feature-gates="+flag, "--config=/nonexistent").Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if refused := gates.Refusal(err); refused != "" {
		return fmt.Errorf("the kubelet of node image %s refuses the gates %s: %s: leave out what the release does not have", cfg.NodeImage, flag, refused)
	}
	return nil
}

// Delete deletes the nodes with their volumes, the network, the cluster's entries in the
// kubeconfig, and its files under _output. Deleting what is gone already is no error.
func (c *Cluster) Delete(ctx context.Context, step *progress.Step) error {
	unlock, err := c.Lock(ctx, step)
	if err != nil {
		return err
	}
	defer unlock()
	return c.delete(ctx, step)
}

func (c *Cluster) delete(ctx context.Context, step *progress.Step) error {
	step.Now("deleting cluster %s", c.name)
	if _, err := c.docker.removeContainers(ctx, c.name); err != nil {
		return fmt.Errorf("deleting the nodes of cluster %s: %w", c.name, err)
	}
	if err := errors.Join(c.forgetKubeconfig(step), c.docker.removeNetwork(ctx, c.Context())); err != nil {
		return err
	}
	return os.RemoveAll(c.dir)
}
