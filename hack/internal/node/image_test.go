package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestRetagNamesAnImageByItsContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	tag := name.MustParseReference("registry.k8s.io/kube-proxy:v1.33.13_podenv.4").(name.Tag)
	if err := tarball.WriteToFile(path, tag, empty.Image); err != nil {
		t.Fatal(err)
	}
	ref, open, err := retag(path)
	if err != nil {
		t.Fatal(err)
	}
	id, err := empty.Image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ref.Name(), "registry.k8s.io/kube-proxy:v1.33.13_podenv.4-"+id.Hex[:12]; got != want {
		t.Errorf("new name %s, want %s", got, want)
	}
	archive, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	again := filepath.Join(t.TempDir(), "again.tar")
	f, err := os.Create(again)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFrom(archive); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tarball.ImageFromPath(again, &ref); err != nil {
		t.Errorf("the archive that is loaded does not have the image under its new name: %v", err)
	}
	if _, _, err := retag(filepath.Join(t.TempDir(), "none.tar")); err == nil || !strings.Contains(err.Error(), "none.tar") {
		t.Errorf("retag of no file: %v", err)
	}
}
