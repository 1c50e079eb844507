package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// collectTime is how long collecting logs may take; a node whose docker commands
// hang must not keep a failed run from ending.
const collectTime = time.Minute

// CollectLogs writes what tells why a cluster or its pods do not work to the folder
// dir: for each node the journal, the kubelet's part of it, containerd's, the logs of
// all containers and the container's inspection.
func (c *Cluster) CollectLogs(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- provider(nil).CollectLogs(c.name, dir) }()
	select {
	case <-ctx.Done():
		return fmt.Errorf("collecting the logs of cluster %s in %s: %w", c.name, dir, ctx.Err())
	case err := <-done:
		// kind asks crictl for the images, which a node need not have.
		if logs, _ := filepath.Glob(filepath.Join(dir, "*", "kubelet.log")); err != nil && len(logs) == 0 {
			return fmt.Errorf("collecting the logs of cluster %s in %s: %w", c.name, dir, explain(err))
		}
		return nil
	}
}
