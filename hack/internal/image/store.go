package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/stream"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"podenv.dev/hack/internal/digest"
)

// Stored is an image in the form of registries: an OCI image with gzipped layers.
type Stored struct {
	Architecture string
	Config       v1.Config
	Annotations  map[string]string
	Layers       []func(io.Writer) error // each writes a tar, the same at any time
	Key          string                  // a digest of what Layers write
}

// FromArchive returns the image in a docker-archive that Cached wrote.
func FromArchive(archive string) (Stored, error) {
	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return Stored{}, fmt.Errorf("reading %s: %w", archive, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return Stored{}, fmt.Errorf("reading %s: %w", archive, err)
	}
	s := Stored{Architecture: config.Architecture, Config: config.Config, Key: filepath.Base(archive)}
	layers, err := img.Layers()
	for _, layer := range layers {
		s.Layers = append(s.Layers, func(w io.Writer) error {
			r, err := layer.Uncompressed()
			if err == nil {
				_, err = io.Copy(w, r)
				err = errors.Join(err, r.Close())
			}
			return err
		})
	}
	return s, err
}

// Write returns the image from a folder of dir, which it writes unless it exists.
func (s Stored) Write(ctx context.Context, dir, name string) (v1.Image, error) {
	key := digest.Of(s.Key, s.Architecture, fmt.Sprint(s.Config), fmt.Sprint(s.Annotations))
	dir = filepath.Join(dir, name+"-"+key[:keyLength])
	if img, err := open(dir); err == nil {
		return img, nil
	}
	tmp := dir + ".new"
	if err := errors.Join(os.RemoveAll(tmp), os.RemoveAll(dir)); err != nil { // what a killed process left
		return nil, err
	}
	defer os.RemoveAll(tmp)
	var layers []v1.Layer
	for _, write := range s.Layers {
		r, w := io.Pipe()
		defer context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })()
		defer r.Close()
		go func() { w.CloseWithError(write(w)) }()
		layers = append(layers, stream.NewLayer(r, stream.WithMediaType(types.OCILayer)))
	}
	img, err := New(s.Architecture, s.Config, layers...)
	if err != nil {
		return nil, err
	}
	img = mutate.ConfigMediaType(mutate.MediaType(img, types.OCIManifestSchema1), types.OCIConfigJSON)
	to, err := layout.Write(tmp, empty.Index)
	if err == nil {
		err = errors.Join(to.AppendImage(mutate.Annotations(img, s.Annotations).(v1.Image)), ctx.Err())
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return open(dir)
}

// open returns the only image of an OCI layout.
func open(dir string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%s has not one image", dir))
	}
	return index.Image(m.Manifests[0].Digest)
}

// Difference returns the first file, with its layer, in which two images differ, as it is in each.
// It is empty for equal images.
func Difference(a, b v1.Image) (string, error) {
	digestA, errA := a.Digest()
	digestB, errB := b.Digest()
	if err := errors.Join(errA, errB); err != nil || digestA == digestB {
		return "", err
	}
	listA, errA := list(a)
	listB, errB := list(b)
	if err := errors.Join(errA, errB); err != nil {
		return "", err
	}
	for i := 0; listA[i] != "" || listB[i] != ""; i++ {
		if listA[i] != listB[i] {
			return fmt.Sprintf("%q and %q", listA[i], listB[i]), nil
		}
	}
	return "the manifest, or how layers are compressed", nil
}

// list returns a line for each file of img, one for its configuration, and an empty one.
func list(img v1.Image) ([]string, error) {
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	var lines []string
	for i, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		for tr := tar.NewReader(r); ; {
			h, err := tr.Next()
			if err == io.EOF {
				break
			}
			sum, _, errSum := v1.SHA256(tr)
			if err := errors.Join(err, errSum); err != nil {
				return nil, err
			}
			lines = append(lines, fmt.Sprintf("layer %d: %s %c %o %d:%d %d %s %v %s", i+1, h.Name, h.Typeflag, h.Mode, h.Uid, h.Gid, h.ModTime.Unix(), h.Linkname, h.PAXRecords, sum))
		}
	}
	config, err := img.RawConfigFile()
	return append(lines, string(config), ""), err
}
