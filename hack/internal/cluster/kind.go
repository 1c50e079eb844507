package cluster

import (
	"context"
	"fmt"
	"time"

	kind "sigs.k8s.io/kind/pkg/cluster"

	"podenv.dev/hack/internal/progress"
)

const (
	// cleanupTime is how long cleaning up may take after a failure or Ctrl-C.
	cleanupTime = time.Minute
	// quiet is how long no container must have appeared until an interrupted run
	// is taken to have ended: a docker run that was cut off may still be at work
	// in the daemon.
	quiet = time.Second
)

func provider(step *progress.Step) *kind.Provider {
	return kind.NewProvider(kind.ProviderWithDocker(), kind.ProviderWithLogger(logger{step}))
}

// provision has kind create the cluster. kind cannot be cancelled; but all that it
// runs is docker commands on the nodes, which end when their containers go.
func (d docker) provision(ctx context.Context, cfg *Config, kubeconfig string, step *progress.Step) error {
	done := make(chan error, 1)
	go func() {
		done <- provider(step).Create(cfg.Name,
			kind.CreateWithV1Alpha4Config(cfg.kind()),
			kind.CreateWithKubeconfigPath(kubeconfig),
			// What is left after a failure is looked at first, and deleted by us.
			kind.CreateWithRetain(true))
	}()
	select {
	case err := <-done:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return explain(err)
	case <-ctx.Done():
	}
	step.Now("interrupted: deleting the nodes made so far")
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if _, err := d.removeContainers(cleanup, cfg.Name); err != nil {
			fmt.Fprintf(step.Log(), "removing nodes: %v\n", err)
		}
		select {
		case <-done:
			return ctx.Err()
		case <-cleanup.Done():
			return fmt.Errorf("%w; kind did not end within %s: run `podenv down --name %s`", ctx.Err(), cleanupTime, cfg.Name)
		case <-tick.C:
		}
	}
}

// sweep deletes the containers of the cluster called name until none has appeared
// for a while.
func (d docker) sweep(ctx context.Context, name string) error {
	clean := time.Now()
	return poll(ctx, cleanupTime, func(ctx context.Context) error {
		n, err := d.removeContainers(ctx, name)
		if n > 0 || err != nil {
			clean = time.Now()
		}
		if err == nil && time.Since(clean) < quiet {
			err = fmt.Errorf("nodes of cluster %s that are still being made", name)
		}
		return err
	})
}
