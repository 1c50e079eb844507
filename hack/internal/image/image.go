// Package image makes container images from files, without a registry and without a container engine, as
// docker-archives that `docker load`, `ctr images import` and kind take.
package image

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/digest"
)

// SearchPath is PATH in every image that does not set its own.
const SearchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Spec says what an image contains and how its containers start.
type Spec struct {
	// Name is the full reference: "registry.k8s.io/pause:3.10".
	Name string
	// Architecture is Go's name of it; empty means this machine's.
	Architecture string
	// Base is the layer below Files, if not empty.
	Base  []File
	Files []File
	// Config is the image's configuration. If its Env is empty, it gets SearchPath.
	Config v1.Config
}

// Write writes the image to the file out, which it replaces atomically. Equal specs give equal bytes.
func (s Spec) Write(out string) error {
	if _, err := name.NewTag(s.Name, name.StrictValidation); err != nil {
		return fmt.Errorf("image %s: %w", s.Name, err)
	}
	var layers []v1.Layer
	for _, files := range [][]File{s.Base, s.Files} {
		if len(files) == 0 {
			continue
		}
		layer, err := NewLayer(WriteTar(files))
		if err != nil {
			return fmt.Errorf("image %s: %w", s.Name, err)
		}
		layers = append(layers, layer)
	}
	img, err := New(cmp.Or(s.Architecture, runtime.GOARCH), s.Config, layers...)
	if err != nil {
		return fmt.Errorf("image %s: %w", s.Name, err)
	}
	return WriteFile(out, func(w io.Writer) error { return Write(w, s.Name, img) })
}

// New returns an image of layers for an architecture.
func New(architecture string, config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	if len(config.Env) == 0 {
		config.Env = []string{SearchPath}
	}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: architecture,
		OS:           "linux",
		Created:      v1.Time{Time: Epoch.UTC()},
		Config:       config,
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(img, layers...)
}

// layer is a v1.Layer of a tar that is written again each time it is read. It is not compressed,
// because it only goes to the container engine of this machine.
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

func (l *layer) Uncompressed() (io.ReadCloser, error) { return Reader(l.write), nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return l.Uncompressed() }
func (l *layer) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l *layer) Size() (int64, error)                 { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return types.DockerUncompressedLayer, nil }

// Write writes img to w as a docker-archive, with the reference ref.
func Write(w io.Writer, ref string, img v1.Image) error {
	tag, err := name.NewTag(ref)
	if err == nil {
		err = tarball.Write(tag, img, w)
	}
	if err != nil {
		return fmt.Errorf("image %s: writing its archive: %w", ref, err)
	}
	return nil
}

// WriteFile replaces the file out atomically by what write writes.
func WriteFile(out string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	pending, err := renameio.NewPendingFile(out, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer pending.Cleanup() //nolint:errcheck // a no-op once the file has its name
	if err := write(pending); err != nil {
		return err
	}
	return pending.CloseAtomicallyReplace()
}

// keyLength is how many digits of a key are in a file name.
const keyLength = 16

// Cached lets write write the archive dir/<name>-<key>.tar, unless that file exists, and then
// removes the files of other keys of that name. key is a digest of all inputs of the images.
// Cached returns the file, and whether it was written.
func Cached(dir, name, key string, write func(archive string) error) (archive string, written bool, err error) {
	archive = filepath.Join(dir, name+"-"+key[:keyLength]+".tar")
	if _, err := os.Stat(archive); err == nil {
		return archive, false, nil
	}
	// The pattern of a key does not match the end of another image's name.
	old, err := filepath.Glob(filepath.Join(dir, name+"-"+strings.Repeat("[0-9a-f]", keyLength)+".tar"))
	if err != nil {
		return "", false, err
	}
	if err := write(archive); err != nil {
		return "", false, err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return "", false, err
		}
	}
	return archive, true, nil
}

// specFormat is part of the key of a Spec. Increment it when the packing changes.
const specFormat = "1"

// Key is a digest of s and of the local files that it packs.
func (s Spec) Key() (string, error) {
	files, err := FilesKey(slices.Concat(s.Base, s.Files))
	return digest.Of(specFormat, s.Name, s.Architecture, fmt.Sprint(s.Config), files), err
}

// Cached is the function Cached for the archive of s.
func (s Spec) Cached(dir, name string) (archive string, written bool, err error) {
	key, err := s.Key()
	if err != nil {
		return "", false, err
	}
	return Cached(dir, name, key, s.Write)
}

// Tags returns the references of the images in a docker-archive.
func Tags(archive string) ([]string, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", archive, err)
	}
	var tags []string
	for _, image := range manifest {
		tags = append(tags, image.RepoTags...)
	}
	return tags, nil
}
