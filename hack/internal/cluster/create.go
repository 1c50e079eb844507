package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
)

const (
	// readyTimeout is how long a cluster may take to serve after kind has created it, or after
	// its nodes were started.
	readyTimeout = 3 * time.Minute
	// reuseTimeout is how long a cluster with running nodes may take to serve.
	reuseTimeout = time.Minute
)

// Create returns a cluster that matches cfg, has its images, and serves.
//
// An existing cluster that matches is reused; its nodes are started if they are stopped. One
// that differs or does not serve is recreated if nothing runs on it or cfg.Recreate is set;
// otherwise ErrInUse is in the chain of the error. Other errors in the chain are ErrNotOurs,
// for a cluster that somebody else created, and remedy.ErrPortInUse.
//
// If the creation of a cluster fails or ctx ends, no node is left. The logs of the nodes of a
// failed cluster are kept in _output/logs.
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
	want, err := c.newRecord(ctx, &cfg)
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
	var mismatch error // why the existing cluster is not reused
	if len(found) > 0 {
		c.record = c.docker.readRecord(ctx, c.name)
		if err := c.checkOwner(); err != nil {
			return nil, err
		}
		if mismatch = c.reuse(ctx, found, want, cfg.Images, step); mismatch == nil {
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
	if mismatch == nil || c.record != nil && c.record.APIServerPort != cfg.APIServerPort {
		// The cluster's nodes do not hold the port. Check it before they are deleted.
		if err := checkPortFree(cfg.APIServerPort); err != nil {
			return nil, err
		}
	}
	if mismatch != nil {
		if err := c.checkNotInUse(ctx, mismatch, cfg.Recreate); err != nil {
			return nil, err
		}
		step.Now("recreating the cluster: %v", mismatch)
		if err := c.delete(ctx, step); err != nil {
			return nil, fmt.Errorf("deleting cluster %s, because %w: %w", c.name, mismatch, err)
		}
	}
	c.record = want
	if err := c.create(ctx, &cfg, step); err != nil {
		return nil, c.abort(ctx, err, step)
	}
	return c, nil
}

func (c *Cluster) newRecord(ctx context.Context, cfg *Config) (*record, error) {
	id, err := c.docker.imageID(ctx, cfg.NodeImage)
	if err != nil {
		return nil, err
	}
	var kind, key string
	if cfg.Kind != nil {
		data, err := json.Marshal(cfg.Kind)
		if err != nil {
			return nil, err
		}
		kind = digest.Of(string(data))
	}
	if cfg.Verifier != nil {
		if key, err = digest.File(cfg.Verifier.Key); err != nil {
			return nil, err
		}
		key = digest.Of(key, askVerifiers)
	}
	return &record{
		KindConfig:    kind,
		VerifyKey:     key,
		Checkout:      c.layout.Root,
		NodeImage:     cfg.NodeImage,
		ImageID:       id,
		Workers:       cfg.Workers,
		ControlPlanes: cfg.ControlPlanes,
		Gates:         cfg.gates(),
		Verbosity:     cfg.Verbosity,
		APIServerPort: cfg.APIServerPort,
	}, nil
}

// reuse makes the existing cluster serve as want describes, or says why it does not.
func (c *Cluster) reuse(ctx context.Context, found []container, want *record, images []string, step *progress.Step) error {
	if c.record == nil {
		return errors.New("a run that was interrupted left it half-made")
	}
	if why := c.record.difference(want); why != "" {
		return errors.New(why)
	}
	n := want.controlPlanes() + want.Workers
	if want.ControlPlanes > 1 {
		n++ // the load balancer
	}
	if len(found) != n {
		return fmt.Errorf("it has %d of its %d nodes left", len(found), n)
	}
	limit := reuseTimeout
	for _, node := range found {
		if !node.Running {
			step.Now("starting node %s, which was stopped", node.Name)
			if err := c.docker(ctx, "start", node.Name).Run(); err != nil {
				return err
			}
			limit = readyTimeout
		}
	}
	step.Now("checking that cluster %s serves", c.name)
	if err := c.exportKubeconfig(step); err != nil {
		return err
	}
	if err := c.WaitServing(ctx, limit, step); err != nil {
		return err
	}
	if err := c.LoadImages(ctx, images, step); err != nil {
		return err
	}
	return c.save(ctx)
}

// create creates the cluster. It saves the record last: a cluster with a record is complete.
func (c *Cluster) create(ctx context.Context, cfg *Config, step *progress.Step) error {
	if err := c.provision(ctx, cfg, step); err != nil {
		return err
	}
	if cfg.Temporary {
		if _, err := c.docker.onMarked(ctx, c.name, "update", "--restart=no"); err != nil {
			return err
		}
	}
	if err := c.installVerifier(ctx, cfg.Verifier, step); err != nil {
		return err
	}
	if err := c.exportKubeconfig(step); err != nil {
		return err
	}
	if err := c.LoadImages(ctx, cfg.Images, step); err != nil {
		return err
	}
	if err := c.WaitServing(ctx, readyTimeout, step); err != nil {
		return err
	}
	return c.save(ctx)
}

// abort deletes what exists of a cluster whose creation failed with err. It keeps the logs of
// the nodes unless ctx has ended.
func (c *Cluster) abort(ctx context.Context, err error, step *progress.Step) error {
	err = fmt.Errorf("creating cluster %s: %w", c.name, err)
	if ctx.Err() == nil {
		logs := filepath.Join(c.layout.Logs(), "cluster-"+c.name)
		step.Now("collecting the nodes' logs")
		if os.RemoveAll(logs) == nil && c.CollectLogs(ctx, logs) == nil {
			err = fmt.Errorf("%w\n  logs of its nodes: %s", err, logs)
			if line := nodeFailure(logs); line != "" {
				err = fmt.Errorf("%w\n  %s", err, line)
			}
		}
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*cleanupTimeout)
	defer cancel()
	if swept := c.docker.sweep(cleanup, c.name); swept != nil {
		err = errors.Join(err, fmt.Errorf("deleting its nodes: %w: run `%s`", swept, c.command("down")))
	}
	if deleted := c.delete(cleanup, step); deleted != nil {
		err = errors.Join(err, deleted)
	}
	return err
}

// checkGates starts the node image's kubelet with the gates: components that refuse a gate
// would crash until kubeadm gives up, minutes later. Without a configuration the kubelet fails
// in any case, so that only a message about a gate counts.
func (c *Cluster) checkGates(ctx context.Context, cfg *Config, step *progress.Step) error {
	flag := featuregates.Flag(cfg.gates())
	if flag == "" {
		return nil
	}
	step.Now("checking that the release knows the gates")
	err := c.docker(ctx, "run", "--rm", "--network=none", "--entrypoint=kubelet", cfg.NodeImage,
		"--feature-gates="+flag, "--config=/nonexistent").Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if refused := featuregates.Refusal(err); refused != "" {
		return fmt.Errorf("the kubelet of node image %s refuses the gates %s: %s: leave out what the release does not have", cfg.NodeImage, flag, refused)
	}
	return nil
}

// Delete deletes the nodes with their volumes, the network, the cluster's entries in the
// kubeconfig, and its files under _output. A cluster that is already gone is no error.
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
	if err := errors.Join(c.removeFromKubeconfigs(step), c.docker.removeNetwork(ctx, c.Context())); err != nil {
		return err
	}
	return os.RemoveAll(c.dir)
}

// apiServerAddress is the host address on which kind publishes an API server's port.
const apiServerAddress = "127.0.0.1"

// CheckPort returns the error that Create would return for an API server's port, before
// anything is built: the port is invalid, or another process listens there. In the latter case
// remedy.ErrPortInUse is in the chain. The nodes of the cluster called name may hold the port.
func CheckPort(ctx context.Context, name string, port int) error {
	if err := validatePort(port); err != nil {
		return err
	}
	inUse := checkPortFree(port)
	if inUse == nil {
		return nil
	}
	e, err := engine.Find(ctx)
	if err != nil {
		return inUse // without an engine there are no nodes
	}
	nodes, err := docker(e.Docker).containers(ctx, name)
	if err != nil || len(nodes) > 0 {
		return nil // Create decides
	}
	return inUse
}

func validatePort(port int) error {
	if port < 0 || port > math.MaxUint16 {
		return fmt.Errorf("the API server cannot listen on port %d: name one up to %d, or 0 for any that is free", port, math.MaxUint16)
	}
	return nil
}

// checkPortFree returns an error if a process listens on the port. Port 0 is always free.
func checkPortFree(port int) error {
	address := net.JoinHostPort(apiServerAddress, strconv.Itoa(port))
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return remedy.New(
			fmt.Errorf("%w: something listens on %s, the address for the API server", remedy.ErrPortInUse, address),
			"see what with `ss -ltnp`, and stop it, or choose another port with --api-server-port",
		)
	case err != nil:
		return nil // the engine, which runs as root, may be allowed to listen there
	}
	return listener.Close()
}
