package build

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/renameio/v2"
)

// searchPath is PATH in every image that does not set its own.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// ImageSpec says what an image holds and how its containers start.
type ImageSpec struct {
	// Name is the full reference: "registry.k8s.io/pause:3.10".
	Name  string
	Files []File
	// Config is the image's configuration. PATH is added to its Env where it has none.
	Config v1.Config
}

// StaticImage writes the image that spec describes to the file out, as a docker-archive
// that `docker load`, `ctr images import` and kind take. It needs no registry and no
// container engine. Equal specs make equal bytes; out is complete or absent.
func StaticImage(spec ImageSpec, out string) error {
	img, err := newImage(spec.Config, spec.Files)
	if err != nil {
		return fmt.Errorf("image %s: %w", spec.Name, err)
	}
	return writeArchive(img, spec.Name, out)
}

// newImage makes an image with one layer for each group of files.
func newImage(config v1.Config, groups ...[]File) (v1.Image, error) {
	if len(config.Env) == 0 {
		config.Env = []string{searchPath}
	}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: runtime.GOARCH,
		OS:           "linux",
		Created:      v1.Time{Time: time.Unix(0, 0).UTC()},
		Config:       config,
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, files := range groups {
		layer, err := newLayer(files)
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, err
		}
	}
	return img, nil
}

// writeArchive writes img to the file out under the reference ref.
func writeArchive(img v1.Image, ref, out string) error {
	tag, err := name.NewTag(ref, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	pending, err := renameio.NewPendingFile(out, renameio.WithPermissions(0o644))
	if err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	defer pending.Cleanup() //nolint:errcheck // a no-op once the file has its name
	if err := tarball.Write(tag, img, pending); err != nil {
		return fmt.Errorf("image %s: writing %s: %w", ref, out, err)
	}
	return pending.CloseAtomicallyReplace()
}
