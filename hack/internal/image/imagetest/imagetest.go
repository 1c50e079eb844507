// Package imagetest reads docker-archives for tests.
package imagetest

import (
	"archive/tar"
	"errors"
	"io"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// File is an entry of a tar, with its content.
type File struct {
	*tar.Header
	Data []byte
}

// Tar returns the files in the tar r by name. A name that occurs twice fails the test.
func Tar(t testing.TB, r io.Reader) map[string]File {
	t.Helper()
	files := map[string]File{}
	tr := tar.NewReader(r)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := files[hdr.Name]; twice {
			t.Errorf("%s is in the tar twice", hdr.Name)
		}
		files[hdr.Name] = File{hdr, data}
	}
}

// Archive returns the only image in a docker-archive, which must be valid, and its files.
func Archive(t testing.TB, archive string) (map[string]File, v1.Image) {
	t.Helper()
	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Fatalf("the image is not valid: %v", err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]File{}
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range Tar(t, r) {
			all[name] = f
		}
	}
	return all, img
}
