package cluster

import (
	"context"
	"fmt"
	"io"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/progress"
)

// Verifier makes the nodes refuse to pull images that are not signed with a key. containerd asks
// the programs in a folder about each image that it pulls.
type Verifier struct {
	Program string // hack/images/image-verifier, compiled
	Key     string // the file of the public key
}

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
		r, w := io.Pipe()
		go func() { w.CloseWithError(write(w)) }()
		err := c.docker(ctx, "cp", "-", node.Name+":/").Stdin(r).Run()
		if r.Close(); err != nil {
			return fmt.Errorf("installing the image verifier on %s: %w", node.Name, err)
		}
	}
	return nil
}
