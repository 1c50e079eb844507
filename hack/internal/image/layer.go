package image

import (
	"archive/tar"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is a tar that is written again each time it is read. It is not compressed, because it
// only goes to the container engine of this machine.
type layer struct {
	write func(io.Writer) error
	hash  v1.Hash
	size  int64 // bytes
}

// NewLayer returns a layer with the tar that write writes. write must write the same each time.
func NewLayer(write func(io.Writer) error) (v1.Layer, error) {
	l := &layer{write: write}
	r, err := l.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	l.hash, l.size, err = v1.SHA256(r)
	return l, err
}

// FilesLayer returns a layer with files.
func FilesLayer(files []File) (v1.Layer, error) {
	return NewLayer(WriteTar(files))
}

// WriteTar returns a function that writes the tar of files.
func WriteTar(files []File) func(io.Writer) error {
	return func(w io.Writer) error {
		tw := tar.NewWriter(w)
		if err := WriteFiles(tw, files, nil); err != nil {
			return err
		}
		return tw.Close()
	}
}

// Uncompressed is part of v1.Layer.
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(l.write(w)) }()
	return r, nil
}

// Compressed is part of v1.Layer.
func (l *layer) Compressed() (io.ReadCloser, error) { return l.Uncompressed() }

// Digest is part of v1.Layer.
func (l *layer) Digest() (v1.Hash, error) { return l.hash, nil }

// DiffID is part of v1.Layer.
func (l *layer) DiffID() (v1.Hash, error) { return l.hash, nil }

// Size is part of v1.Layer.
func (l *layer) Size() (int64, error) { return l.size, nil }

// MediaType is part of v1.Layer.
func (l *layer) MediaType() (types.MediaType, error) { return types.DockerUncompressedLayer, nil }
