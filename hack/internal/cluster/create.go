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
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// reuseTime is how long a cluster that is there already may take to serve before
// it is made anew, with all that people have in it.
const reuseTime = time.Minute

// Create returns a cluster as cfg describes that serves. One that exists and was
// made from the same is returned at once; one that podenv made from something else,
// that does not serve or that was left half-made is made anew. ErrNotOurs is in the
// chain of the error for a name that somebody else's cluster has, engine.ErrPortInUse
// for a port that something else listens on.
//
// Where it fails, or ctx ends, no node is left; the logs of the nodes of a failed
// cluster are kept below _output/logs.
func Create(ctx context.Context, l layout.Layout, e *engine.Engine, cfg Config, step *progress.Step) (*Cluster, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, l, cfg.Name, step)
	if err != nil {
		return nil, err
	}
	defer unlock()

	c := open(l, e, cfg.Name)
	c.waitReady = cfg.WaitReady
	want, err := c.docker.want(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	found, err := c.docker.containers(ctx, cfg.Name)
	if err != nil {
		return nil, err
	}
	have := c.docker.readRecord(ctx, cfg.Name)
	do, why := decide(found, have, want)
	if do == reuse {
		c.record = have
		if err := c.resume(ctx, want.Kubeconfig, step); err == nil {
			step.Cached("as it was")
			return c, nil
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		} else {
			do, why = recreate, err.Error()
		}
	}
	if do == refuse {
		return nil, fmt.Errorf("%w: %s: choose another name with --name", ErrNotOurs, why)
	}
	if err := c.docker.checkGates(ctx, &cfg, step); err != nil {
		return nil, err
	}
	if port := cfg.APIServerPort; do == create || have != nil && have.APIServerPort != port {
		// Its nodes do not hold the port: nothing is deleted in vain.
		if err := portFree(port); err != nil {
			return nil, err
		}
	}
	if do == recreate {
		step.Now("making the cluster anew: %s", why)
		c.record = have
		if err := c.delete(ctx, step); err != nil {
			return nil, fmt.Errorf("deleting cluster %s, because %s: %w", c.name, why, err)
		}
	}
	c.record = want
	if err := c.make(ctx, &cfg, step); err != nil {
		return nil, c.undo(ctx, err, step)
	}
	return c, nil
}

// want is the record of a cluster made from cfg.
func (d docker) want(ctx context.Context, cfg *Config) (*record, error) {
	id, err := d.imageID(ctx, cfg.NodeImage)
	if err != nil {
		return nil, err
	}
	path := cfg.Kubeconfig
	if path == "" {
		path = clientcmd.NewDefaultPathOptions().GetDefaultFilename()
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return &record{
		NodeImage:     cfg.NodeImage,
		ImageID:       id,
		Workers:       cfg.Workers,
		Gates:         maps.Clone(cfg.Gates),
		Verbosity:     cfg.Verbosity,
		Kubeconfig:    path,
		APIServerPort: cfg.APIServerPort,
	}, nil
}

// resume takes a cluster that is there as it is, if it serves.
func (c *Cluster) resume(ctx context.Context, kubeconfig string, step *progress.Step) error {
	step.Now("looking whether cluster %s serves", c.name)
	if err := c.exportKubeconfig(kubeconfig, step); err != nil {
		return err
	}
	if err := c.waitServing(ctx, reuseTime, step); err != nil {
		return err
	}
	if c.record.Kubeconfig == kubeconfig {
		return nil
	}
	c.record.Kubeconfig = kubeconfig
	return c.save(ctx)
}

// make creates the cluster. The record, which says that it is whole, comes last.
func (c *Cluster) make(ctx context.Context, cfg *Config, step *progress.Step) error {
	unlock, err := c.docker.holdNetwork(ctx)
	if err != nil {
		return err
	}
	err = c.docker.provision(ctx, cfg, c.record.Kubeconfig, step)
	unlock()
	if err != nil {
		return err
	}
	if err := c.writeKubeconfig(step); err != nil {
		return err
	}
	if err := c.WaitServing(ctx, step); err != nil {
		return err
	}
	return c.save(ctx)
}

// undo deletes what was made of a cluster that err stopped, after a look at its
// nodes if it was not a person who stopped it.
func (c *Cluster) undo(ctx context.Context, err error, step *progress.Step) error {
	err = fmt.Errorf("creating cluster %s: %w", c.name, err)
	if ctx.Err() == nil {
		logs := filepath.Join(c.logs, "cluster-"+c.name)
		step.Now("collecting the nodes' logs")
		if os.RemoveAll(logs) == nil && c.CollectLogs(ctx, logs) == nil {
			err = fmt.Errorf("%w\n  logs of its nodes: %s", err, logs)
			if told := kubeletsTell(logs); told != "" {
				err = fmt.Errorf("%w\n  %s", err, told)
			}
		}
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*cleanupTime)
	defer cancel()
	if swept := c.docker.sweep(cleanup, c.name); swept != nil {
		err = errors.Join(err, fmt.Errorf("deleting its nodes: %w: run `podenv down --name %s`", swept, c.name))
	}
	if deleted := c.delete(cleanup, step); deleted != nil {
		err = errors.Join(err, deleted)
	}
	return err
}
