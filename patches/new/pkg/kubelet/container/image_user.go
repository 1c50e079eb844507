package container

import "context"

// ImageUserGetter knows as whom an image makes its containers run. Every Runtime
// has it.
type ImageUserGetter interface {
	// GetImageUID returns the user of a container of the image that sets no
	// runAsUser: 0 if the image does not say, nil if it says a name, which only
	// the image's own files could resolve. The image must be on the node.
	GetImageUID(ctx context.Context, image string) (*int64, error)
}
