package node

import (
	"context"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"podenv.dev/hack/internal/image"
)

// retagged is an image with a tag made from its content. Builds of one version share a tag,
// but a pod changes only if the name of its image does.
type retagged struct {
	ref   name.Tag
	image v1.Image
}

// retag opens the archive of one image at path.
func retag(path string) (*retagged, error) {
	tags, err := image.Tags(path)
	if err != nil {
		return nil, err
	}
	if len(tags) == 0 {
		return nil, fmt.Errorf("image archive %s must have one image with a tag", path)
	}
	old, err := name.NewTag(tags[0])
	if err != nil {
		return nil, fmt.Errorf("image archive %s: %w", path, err)
	}
	only, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		return nil, fmt.Errorf("reading image archive %s: %w", path, err)
	}
	id, err := only.ConfigName()
	if err != nil {
		return nil, err
	}
	return &retagged{ref: old.Context().Tag(fmt.Sprintf("%s-%.12s", old.TagStr(), id.Hex)), image: only}, nil
}

// open returns the image as an archive.
func (r *retagged) open() (io.ReadCloser, error) {
	out, in := io.Pipe()
	go func() { in.CloseWithError(tarball.Write(r.ref, r.image, in)) }()
	return out, nil
}

// loadImage loads an image onto the node, and returns its new name.
func (t *target) loadImage(ctx context.Context, archive string) (string, error) {
	r, err := retag(archive)
	if err != nil {
		return "", err
	}
	return r.ref.Name(), t.LoadImage(ctx, r.open, t.step, t.node)
}
