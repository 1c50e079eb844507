package build

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// archiveTags returns the names in a docker-archive, as `docker load` and kind read them.
func archiveTags(t *testing.T, archive []byte) []string {
	t.Helper()
	var manifest []struct{ RepoTags []string }
	if err := json.Unmarshal(tarFiles(t, bytes.NewReader(archive))["manifest.json"].data, &manifest); err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, image := range manifest {
		tags = append(tags, image.RepoTags...)
	}
	return tags
}

type tarFile struct {
	*tar.Header
	data []byte
}

func tarFiles(t *testing.T, r io.Reader) map[string]tarFile {
	t.Helper()
	files := map[string]tarFile{}
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
		files[hdr.Name] = tarFile{hdr, data}
	}
}

// imageFiles returns the files of the only image in a docker-archive, with that image.
func imageFiles(t *testing.T, archive string) (map[string]tarFile, v1.Image) {
	t.Helper()
	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Fatalf("the image does not hold together: %v", err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]tarFile{}
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range tarFiles(t, r) {
			all[name] = f
		}
	}
	return all, img
}

func TestStaticImageHoldsWhatItsSpecSays(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	write(t, program, "#!program")
	out := filepath.Join(dir, "new", "image.tar")
	err := StaticImage(ImageSpec{
		Name: "podenv.dev/thing:1",
		Files: []File{
			{Path: "/usr/local/bin/thing", Mode: 0o755 | fs.ModeSetuid, Source: program},
			{Path: "/etc/config", Mode: 0o640, Data: []byte("a: b\n")},
			{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
			{Path: "/bin", Link: "usr/local/bin"},
		},
		Config: v1.Config{Entrypoint: []string{"thing"}, User: "1000"},
	}, out)
	if err != nil {
		t.Fatal(err)
	}
	if tags := archiveTags(t, []byte(read(t, out))); !slices.Equal(tags, []string{"podenv.dev/thing:1"}) {
		t.Errorf("tags = %v", tags)
	}
	files, img := imageFiles(t, out)
	for name, want := range map[string]tarFile{
		"usr/":                {Header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}},
		"usr/local/":          {Header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}},
		"usr/local/bin/":      {Header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}},
		"usr/local/bin/thing": {Header: &tar.Header{Typeflag: tar.TypeReg, Mode: 0o4755}, data: []byte("#!program")},
		"etc/":                {Header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}},
		"etc/config":          {Header: &tar.Header{Typeflag: tar.TypeReg, Mode: 0o640}, data: []byte("a: b\n")},
		"tmp/":                {Header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o1777}},
		"bin":                 {Header: &tar.Header{Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "usr/local/bin"}},
	} {
		got, ok := files[name]
		if !ok {
			t.Errorf("the image lacks %s", name)
			continue
		}
		if got.Typeflag != want.Typeflag || got.Mode != want.Mode || got.Linkname != want.Linkname || !bytes.Equal(got.data, want.data) {
			t.Errorf("%s: type %c, mode %o, link %q, content %q", name, got.Typeflag, got.Mode, got.Linkname, got.data)
		}
		if got.Uid != 0 || got.Gid != 0 || got.ModTime.Unix() != 0 {
			t.Errorf("%s belongs to %d:%d and is of %v", name, got.Uid, got.Gid, got.ModTime)
		}
		delete(files, name)
	}
	for name := range files {
		t.Errorf("the image has %s, which nobody asked for", name)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH || config.Config.User != "1000" ||
		!slices.Equal(config.Config.Entrypoint, []string{"thing"}) || !slices.Equal(config.Config.Env, []string{searchPath}) {
		t.Errorf("config = %+v", config)
	}
}

func TestStaticImageIsTheSameEachTime(t *testing.T) {
	files := []File{
		{Path: "/b", Mode: 0o644, Data: bytes.Repeat([]byte("b"), 1<<20)},
		{Path: "/a/c", Mode: 0o755, Data: []byte("c")},
		{Path: "/a/b", Link: "c"},
	}
	var outs [2]string
	for i := range outs {
		out := filepath.Join(t.TempDir(), "image.tar")
		if err := StaticImage(ImageSpec{Name: "podenv.dev/thing:1", Files: files}, out); err != nil {
			t.Fatal(err)
		}
		outs[i] = read(t, out)
		slices.Reverse(files)
	}
	if outs[0] != outs[1] {
		t.Error("two images of the same files differ")
	}
}

func TestStaticImageRefusesABadSpec(t *testing.T) {
	file := func(path string) []File { return []File{{Path: path, Mode: 0o644}} }
	for _, tc := range []struct {
		name string
		spec ImageSpec
		want string
	}{
		{"a relative path", ImageSpec{Name: "podenv.dev/x:1", Files: file("bin/x")}, "clean absolute path"},
		{"a path that leaves the image", ImageSpec{Name: "podenv.dev/x:1", Files: file("/../x")}, "clean absolute path"},
		{"the root", ImageSpec{Name: "podenv.dev/x:1", Files: file("/")}, "clean absolute path"},
		{"a file twice", ImageSpec{Name: "podenv.dev/x:1", Files: append(file("/x"), file("/x")...)}, "given twice"},
		{"a file in a file", ImageSpec{Name: "podenv.dev/x:1", Files: append(file("/x"), file("/x/y")...)}, "not a directory"},
		{"a file that is not there", ImageSpec{Name: "podenv.dev/x:1", Files: []File{{Path: "/x", Source: "/nonexistent/x"}}}, "no such file"},
		{"a folder for a file", ImageSpec{Name: "podenv.dev/x:1", Files: []File{{Path: "/x", Source: "/"}}}, "not a regular file"},
		{"a name without a tag", ImageSpec{Name: "podenv.dev/x", Files: file("/x")}, "podenv.dev/x"},
		{"a version that is no tag", ImageSpec{Name: "podenv.dev/x:v1+2", Files: file("/x")}, "v1+2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "image.tar")
			write(t, out, "the one before")
			if err := StaticImage(tc.spec, out); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("StaticImage = %v, want %q in it", err, tc.want)
			}
			if read(t, out) != "the one before" {
				t.Error("the image from before is damaged")
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("left %v, %v", entries, err)
			}
		})
	}
}
