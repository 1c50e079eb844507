package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/progress"
)

// LoadImages loads image archives, as `docker save` writes them, onto every node.
func (c *Cluster) LoadImages(ctx context.Context, archives []string, step *progress.Step) error {
	for _, archive := range archives {
		step.Now("loading %s", filepath.Base(archive))
		err := c.LoadImage(ctx, func() (io.ReadCloser, error) { return os.Open(archive) }, step)
		if err != nil {
			return fmt.Errorf("loading image %s onto the nodes of cluster %s: %w", archive, c.name, err)
		}
	}
	return nil
}

// LoadImage loads the archive that open returns onto the named nodes, or all, in parallel.
func (c *Cluster) LoadImage(ctx context.Context, open func() (io.ReadCloser, error), step *progress.Step, names ...string) error {
	all, err := provider(step).ListInternalNodes(c.name)
	if err != nil {
		return explain(err)
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, node := range all {
		if len(names) == 0 || slices.Contains(names, node.String()) {
			g.Go(func() error { return loadOnto(gctx, node, open) })
		}
	}
	return g.Wait()
}

func loadOnto(ctx context.Context, node nodes.Node, open func() (io.ReadCloser, error)) error {
	archive, err := open()
	if err != nil {
		return err
	}
	defer archive.Close()
	// A command of kind on a node cannot be cancelled, but fails with its reader. It would read a bare file itself.
	defer context.AfterFunc(ctx, func() { archive.Close() })()
	err = nodeutils.LoadImageArchive(node, struct{ io.Reader }{archive})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", node, explain(err))
	}
	return nil
}

// Verifier makes the nodes refuse to pull images that are not signed with a key. containerd asks
// the programs in a folder about each image that it pulls.
type Verifier struct {
	Program string // hack/images/image-verifier, compiled
	Key     string // the file of the public key
}

// askVerifiers lets containerd's transfer service pull for the kubelet. containerd pulls in another
// way, which asks no verifier, if some settings are not at their defaults; the first one of the node image
// is. That service takes the default of the second, two folders, for one that does not exist, and unpacks
// only for snapshotters that it knows, by default not for the one that kind sets on ZFS.
const askVerifiers = `[plugins."io.containerd.cri.v1.images"]
  discard_unpacked_layers = false
  registry.config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.transfer.v1.local"]
  unpack_config = [{platform = "linux", snapshotter = "overlayfs", differ = "walking", optional = true}, {platform = "linux", snapshotter = "native", differ = "walking"}]
`

// installVerifier puts v on all nodes. Images that are already there are not pulled.
func (c *Cluster) installVerifier(ctx context.Context, v *Verifier, step *progress.Step) error {
	if v == nil {
		return nil
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	write := image.WriteTar([]image.File{
		{Path: "/opt/containerd/image-verifier/bin/podenv", Mode: 0o755, Source: v.Program},
		{Path: "/opt/containerd/image-verifier/key.pub", Mode: 0o644, Source: v.Key},
	})
	for _, node := range nodes {
		step.Now("installing the image verifier on %s", node.Name)
		r := image.Reader(write)
		err := c.docker(ctx, "cp", "-", node.Name+":/").Stdin(r).Run()
		if r.Close(); err != nil {
			return fmt.Errorf("installing the image verifier on %s: %w", node.Name, err)
		}
	}
	return nil
}
