package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"podenv.dev/hack/internal/progress"
)

// Delete deletes the nodes with their volumes, the network if we made it and nobody
// else is in it, the cluster's entries in the kubeconfig, and its files under
// _output. Deleting what is gone already is no error.
func (c *Cluster) Delete(ctx context.Context, step *progress.Step) error {
	unlock, err := lock(ctx, c.layout, c.name, step)
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
	return errors.Join(
		c.forgetKubeconfig(step),
		c.docker.removeNetwork(ctx),
		os.RemoveAll(c.dir),
	)
}
