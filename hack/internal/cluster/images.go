package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"podenv.dev/hack/internal/progress"
)

// LoadImages loads image archives, as `docker save` writes them, onto every node.
func (c *Cluster) LoadImages(ctx context.Context, tars []string, step *progress.Step) error {
	for _, tar := range tars {
		step.Now("loading %s", filepath.Base(tar))
		err := c.loadImage(ctx, step, func() (io.ReadCloser, error) { return os.Open(tar) })
		if err != nil {
			return fmt.Errorf("loading image %s onto the nodes of cluster %s: %w", tar, c.name, err)
		}
	}
	return nil
}

// loadImage loads the archive that open opens onto all nodes at once, or onto
// those named.
func (c *Cluster) loadImage(ctx context.Context, step *progress.Step, open func() (io.ReadCloser, error), only ...Node) error {
	all, err := provider(step).ListInternalNodes(c.name)
	if err != nil {
		return explain(err)
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, node := range all {
		if len(only) == 0 || containsNode(only, node.String()) {
			g.Go(func() error { return loadOnto(gctx, node, open) })
		}
	}
	return g.Wait()
}

func containsNode(nodes []Node, name string) bool {
	for _, n := range nodes {
		if n.Name == name {
			return true
		}
	}
	return false
}

func loadOnto(ctx context.Context, node nodes.Node, open func() (io.ReadCloser, error)) error {
	archive, err := open()
	if err != nil {
		return err
	}
	defer archive.Close()
	err = nodeutils.LoadImageArchive(node, contextReader{ctx, archive})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", node, explain(err))
	}
	return nil
}

// contextReader ends when its context does: kind's commands on nodes cannot be
// cancelled, but those that read end with what they read.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
