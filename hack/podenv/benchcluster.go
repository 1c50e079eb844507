package main

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/internal/bench"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/progress"
)

// benchCluster keeps measurements away from other clusters.
const benchCluster = "podenv-bench"

// cluster measures on the cluster called --name or, where there is none, on one that
// lives only for that.
func (b *benchRun) cluster(ctx context.Context) (*bench.Report, error) {
	p, err := b.app.pipeline()
	if err != nil {
		return nil, err
	}
	c, err := b.find(ctx)
	if errors.Is(err, cluster.ErrNotFound) {
		if _, c, err = b.app.up(ctx, p, cluster.Config{Name: benchCluster, Workers: 1}); err == nil {
			defer b.delete(ctx, p.Reporter, c)
		}
	}
	if err != nil {
		return nil, err
	}
	step := p.Reporter.Step("bench cluster " + c.Name())
	report, err := b.startPods(ctx, c, step)
	return report, step.End(err)
}

func (b *benchRun) find(ctx context.Context) (*cluster.Cluster, error) {
	e, err := engine.Ensure(ctx, b.app.layout, nil)
	if err != nil {
		return nil, err
	}
	return cluster.Find(ctx, b.app.layout, e, b.app.name)
}

func (b *benchRun) startPods(ctx context.Context, c *cluster.Cluster, step *progress.Step) (*bench.Report, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return bench.Cluster(ctx, client, b.pods, step)
}

// delete deletes a cluster made for the measurement, also after Ctrl-C.
func (b *benchRun) delete(ctx context.Context, r *progress.Reporter, c *cluster.Cluster) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	step := r.Step("delete cluster " + c.Name())
	step.End(c.Delete(ctx, step)) //nolint:errcheck // it has been shown
}
