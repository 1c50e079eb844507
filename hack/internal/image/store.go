package image

import (
	"archive/tar"
	"bytes"
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

// Stored is an image in the form of registries: an OCI image with a gzipped layer for each of
// Layers.
type Stored struct {
	Architecture string
	Config       v1.Config
	Annotations  map[string]string
	// Layers write the tars of the layers, each the same at any time.
	Layers []func(io.Writer) error
	// Key is a digest of what Layers write.
	Key string
}

// FromArchive returns the image in a docker-archive whose name has a digest of its content, see
// Cached.
func FromArchive(archive string, annotations map[string]string) (Stored, error) {
	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return Stored{}, fmt.Errorf("reading %s: %w", archive, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return Stored{}, fmt.Errorf("reading %s: %w", archive, err)
	}
	s := Stored{Architecture: config.Architecture, Config: config.Config, Annotations: annotations, Key: filepath.Base(archive)}
	layers, err := img.Layers()
	for _, layer := range layers {
		s.Layers = append(s.Layers, func(w io.Writer) error {
			r, err := layer.Uncompressed()
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.Copy(w, r)
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
	img = mutate.Annotations(img, s.Annotations).(v1.Image)
	to, err := layout.Write(tmp, empty.Index)
	if err == nil {
		err = errors.Join(to.AppendImage(img), ctx.Err())
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

// Difference returns where two images first differ: a layer and a file in it, or the
// configuration. It is empty for equal images.
func Difference(a, b v1.Image) (string, error) {
	digestA, errA := a.Digest()
	digestB, errB := b.Digest()
	if err := errors.Join(errA, errB); err != nil || digestA == digestB {
		return "", err
	}
	layersA, errA := a.Layers()
	layersB, errB := b.Layers()
	if err := errors.Join(errA, errB); err != nil {
		return "", err
	}
	for i := range min(len(layersA), len(layersB)) {
		if diff, err := layerDifference(layersA[i], layersB[i]); diff != "" || err != nil {
			return fmt.Sprintf("layer %d: %s", i+1, diff), err
		}
	}
	if len(layersA) != len(layersB) {
		return fmt.Sprintf("%d layers and %d", len(layersA), len(layersB)), nil
	}
	configA, errA := a.RawConfigFile()
	configB, errB := b.RawConfigFile()
	if bytes.Equal(configA, configB) {
		return "the manifest: annotations, or how layers are compressed", errors.Join(errA, errB)
	}
	return "the configuration", errors.Join(errA, errB)
}

func layerDifference(a, b v1.Layer) (string, error) {
	idA, errA := a.DiffID()
	idB, errB := b.DiffID()
	if err := errors.Join(errA, errB); err != nil || idA == idB {
		return "", err
	}
	ra, errA := a.Uncompressed()
	rb, errB := b.Uncompressed()
	if err := errors.Join(errA, errB); err != nil {
		return "", err
	}
	defer ra.Close()
	defer rb.Close()
	return TarDifference(ra, rb)
}

// TarDifference names the first file in which two tars differ, and says how. It is empty if
// their files are equal.
func TarDifference(a, b io.Reader) (string, error) {
	ta, tb := tar.NewReader(a), tar.NewReader(b)
	for {
		ha, errA := ta.Next()
		hb, errB := tb.Next()
		switch {
		case errA == io.EOF && errB == io.EOF:
			return "", nil
		case errA == io.EOF && errB == nil:
			return hb.Name + " is only in the second", nil
		case errB == io.EOF && errA == nil:
			return ha.Name + " is only in the first", nil
		case errA != nil || errB != nil:
			return "", errors.Join(errA, errB)
		case ha.Name != hb.Name:
			return fmt.Sprintf("%s in the first, %s in the second", ha.Name, hb.Name), nil
		}
		headA := fmt.Sprint(ha.Typeflag, ha.Linkname, ha.Mode, ha.Uid, ha.Gid, ha.ModTime.Unix(), ha.PAXRecords)
		headB := fmt.Sprint(hb.Typeflag, hb.Linkname, hb.Mode, hb.Uid, hb.Gid, hb.ModTime.Unix(), hb.PAXRecords)
		if headA != headB {
			return fmt.Sprintf("%s: type, link, mode, owner or time: %s and %s", ha.Name, headA, headB), nil
		}
		sumA, _, errA := v1.SHA256(ta)
		sumB, _, errB := v1.SHA256(tb)
		if err := errors.Join(errA, errB); err != nil || sumA != sumB {
			return ha.Name + ": its content", err
		}
	}
}
