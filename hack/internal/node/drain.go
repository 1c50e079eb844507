package node

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/progress"
)

// Drain cordons a node and evicts its pods as kubectl drain does. If it fails or ctx ends, it uncordons the
// node unless that was cordoned before; pods stay evicted. options has what kubectl drain's flags set.
func Drain(ctx context.Context, c *cluster.Cluster, node string, options drain.Helper, r *progress.Reporter) error {
	return withNode(ctx, c, node, "draining", r, func(ctx context.Context, client kubernetes.Interface, changes cluster.Changes, step *progress.Step) error {
		options.Ctx, options.Client, options.Out, options.ErrOut = ctx, client, step.Log(), step.Log()
		return drainNode(ctx, c, node, options, changes, step)
	})
}

// drainNode drains a node by the client of options, and records it in c.
func drainNode(ctx context.Context, c recorder, node string, options drain.Helper, changes cluster.Changes, step *progress.Step) error {
	object, err := options.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	wasCordoned := object.Spec.Unschedulable
	if !wasCordoned {
		if err := c.SaveChanges(ctx, changes.Cordon(node, true)); err != nil {
			return err
		}
	}
	err = drain.RunCordonOrUncordon(&options, object, true)
	if err == nil {
		step.Now("evicting its pods")
		err = drain.RunNodeDrain(&options, node)
	}
	if err == nil || wasCordoned {
		return err
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), serveTimeout)
	defer cancel()
	if failed := errors.Join(setSchedulable(cleanup, options.Client, node), c.SaveChanges(cleanup, changes)); failed != nil {
		return fmt.Errorf("%w\nthe node could not be uncordoned either: run `podenv node uncordon %s`: %w", err, node, failed)
	}
	return fmt.Errorf("%w\nthe node takes pods again", err)
}

// Uncordon lets a node take pods again.
func Uncordon(ctx context.Context, c *cluster.Cluster, node string, r *progress.Reporter) error {
	return withNode(ctx, c, node, "uncordoning", r, func(ctx context.Context, client kubernetes.Interface, changes cluster.Changes, _ *progress.Step) error {
		if err := setSchedulable(ctx, client, node); err != nil {
			return err
		}
		return c.SaveChanges(context.WithoutCancel(ctx), changes.Cordon(node, false))
	})
}

// withNode runs do, which changes where pods may be scheduled, under the cluster's lock.
func withNode(ctx context.Context, c *cluster.Cluster, node, action string, r *progress.Reporter,
	do func(context.Context, kubernetes.Interface, cluster.Changes, *progress.Step) error) error {
	step := r.Step(node + ": " + action)
	err := func() error {
		unlock, err := c.Lock(ctx, step)
		if err != nil {
			return err
		}
		defer unlock()
		if _, err := clusterNode(ctx, c, node); err != nil {
			return err
		}
		changes, err := c.Changes(ctx)
		if err != nil {
			return err
		}
		client, err := c.Client()
		if err != nil {
			return err
		}
		if err := do(ctx, client, changes, step); err != nil {
			return fmt.Errorf("%s node %s: %w", action, node, err)
		}
		return nil
	}()
	return step.End(err)
}

func setSchedulable(ctx context.Context, client kubernetes.Interface, node string) error {
	object, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return drain.RunCordonOrUncordon(&drain.Helper{Ctx: ctx, Client: client}, object, false)
}
