package image

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// stored is an image of two layers, the second with a file of that content.
func stored(content string) Stored {
	layer := func(files ...File) func(io.Writer) error { return WriteTar(files) }
	return Stored{
		Architecture: "arm64", Key: content, Config: v1.Config{User: "1000"},
		Annotations: map[string]string{"podenv.dev/release": "v1.33.13"},
		Layers: []func(io.Writer) error{
			layer(File{Path: "/etc/config", Mode: 0o644, Data: []byte("a: b\n")}),
			layer(File{Path: "/a", Mode: 0o644}, File{Path: "/usr/bin/x", Mode: 0o755, Data: []byte(content)}),
		},
	}
}

func writeStored(t *testing.T, s Stored) v1.Image {
	t.Helper()
	img, err := s.Write(t.Context(), t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestStoredImagesOfEqualLayersAreEqual(t *testing.T) {
	img, again := writeStored(t, stored("one")), writeStored(t, stored("one"))
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	if diff, err := Difference(img, again); diff != "" || err != nil {
		t.Errorf("two images of the same layers differ: %s, %v", diff, err)
	}
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if m.MediaType != types.OCIManifestSchema1 || m.Config.MediaType != types.OCIConfigJSON ||
		m.Layers[0].MediaType != types.OCILayer || m.Annotations["podenv.dev/release"] != "v1.33.13" {
		t.Errorf("manifest = %+v", m)
	}
	if config, err := img.ConfigFile(); err != nil || config.Architecture != "arm64" || config.Config.User != "1000" {
		t.Errorf("config = %+v, %v", config, err)
	}
}

func TestAnImageIsStoredOnce(t *testing.T) {
	dir, s, written := t.TempDir(), stored("one"), 0
	first := s.Layers[0]
	s.Layers[0] = func(w io.Writer) error { written++; return first(w) }
	for range 2 {
		if _, err := s.Write(t.Context(), dir, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if written != 1 {
		t.Errorf("its layers were written %d times", written)
	}
}

func TestAStoredImageIsWholeOrNotThere(t *testing.T) {
	failed := errors.New("the disk is gone")
	s := stored("one")
	s.Layers[1] = func(io.Writer) error { return failed }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		s    Stored
		want error
	}{
		"a layer that fails": {t.Context(), s, failed},
		"Ctrl-C":             {ended, stored("one"), context.Canceled},
	} {
		dir := t.TempDir()
		if _, err := tc.s.Write(tc.ctx, dir, "x"); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}

func TestDifferenceNamesTheFirstFile(t *testing.T) {
	other := func(change func(*Stored)) v1.Image {
		s := stored("one")
		change(&s)
		return writeStored(t, s)
	}
	for name, tc := range map[string]struct {
		b     v1.Image
		wants []string
	}{
		"one byte":         {writeStored(t, stored("onf")), []string{`"layer 2: usr/bin/x 0 755 0:0 0`, `" and "layer 2: usr/bin/x 0 755 0:0 0`}},
		"a layer less":     {other(func(s *Stored) { s.Layers = s.Layers[:1] }), []string{`"layer 2: a 0 644`, ` and "{`}},
		"the user":         {other(func(s *Stored) { s.Config.User = "0" }), []string{`\"User\":\"1000\"`, `\"User\":\"0\"`}},
		"the annotations":  {other(func(s *Stored) { s.Annotations = nil }), []string{"the manifest, or how layers are compressed"}},
		"layers exchanged": {other(func(s *Stored) { s.Layers[0], s.Layers[1] = s.Layers[1], s.Layers[0] }), []string{"layer 1: etc/ 5", "layer 1: a 0"}},
		"nothing at all":   {empty.Image, []string{"layer 1: etc/ 5"}},
	} {
		got, err := Difference(writeStored(t, stored("one")), tc.b)
		if err != nil {
			t.Error(err)
		}
		for _, want := range tc.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q in it", name, got, want)
			}
		}
	}
}

func TestAnArchiveBecomesAStoredImage(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "x.tar")
	spec := Spec{Name: "podenv.dev/x:1", Architecture: "arm64", Files: MinimalFiles(), Config: v1.Config{Entrypoint: []string{"/x"}}}
	if err := spec.Write(archive); err != nil {
		t.Fatal(err)
	}
	s, err := FromArchive(archive)
	if err != nil {
		t.Fatal(err)
	}
	config, err := writeStored(t, s).ConfigFile()
	if err != nil || config.Architecture != "arm64" || config.Config.Entrypoint[0] != "/x" || len(config.RootFS.DiffIDs) != 1 {
		t.Errorf("config = %+v, %v", config, err)
	}
}
