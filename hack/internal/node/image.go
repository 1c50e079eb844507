package node

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// retagged is the image of an archive under a tag of its own content. A pod changes
// only with the name of its image, and builds of one version share a tag.
type retagged struct {
	ref   name.Tag
	image v1.Image
}

// retag opens the archive of one image at path.
func retag(path string) (*retagged, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		return nil, fmt.Errorf("reading image archive %s: %w", path, err)
	}
	if len(manifest) != 1 || len(manifest[0].RepoTags) == 0 {
		return nil, fmt.Errorf("image archive %s must have one image with a tag", path)
	}
	old, err := name.NewTag(manifest[0].RepoTags[0])
	if err != nil {
		return nil, fmt.Errorf("image archive %s: %w", path, err)
	}
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		return nil, fmt.Errorf("reading image archive %s: %w", path, err)
	}
	id, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	return &retagged{ref: old.Context().Tag(fmt.Sprintf("%s-%.12s", old.TagStr(), id.Hex)), image: image}, nil
}

// open returns the image as an archive.
func (r *retagged) open() (io.ReadCloser, error) {
	out, in := io.Pipe()
	go func() { in.CloseWithError(tarball.Write(r.ref, r.image, in)) }()
	return out, nil
}

// putImage loads an image onto the node, and returns its new name.
func (t *target) putImage(ctx context.Context, archive string) (string, error) {
	r, err := retag(archive)
	if err != nil {
		return "", err
	}
	return r.ref.Name(), t.LoadImage(ctx, r.open, t.step, t.node)
}

// containerLog is the end of the log of the newest container of the component.
func (t *target) containerLog(ctx context.Context) string {
	out, err := t.exec(ctx, "sh", "-c",
		fmt.Sprintf(`tail -n %d "$(ls -t /var/log/containers/%s-*.log | head -n 1)"`, logLines, t.name))
	if err != nil {
		return err.Error()
	}
	return out
}

// logLines is how many of the last lines of its log the error shows if a component does not
// serve.
const logLines = 15
