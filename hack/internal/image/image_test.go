package image

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/image/imagetest"
)

func TestSpecHoldsWhatItsSpecSays(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	write(t, program, "#!program")
	out := filepath.Join(dir, "new", "image.tar")
	err := Spec{
		Name: "podenv.dev/thing:1",
		Files: []File{
			{Path: "/usr/local/bin/thing", Mode: 0o755 | fs.ModeSetuid, Source: program},
			{Path: "/etc/config", Mode: 0o640, Data: []byte("a: b\n")},
			{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
			{Path: "/bin", Link: "usr/local/bin"},
		},
		Config: v1.Config{Entrypoint: []string{"thing"}, User: "1000"},
	}.Write(out)
	if err != nil {
		t.Fatal(err)
	}
	if tags, err := Tags(out); err != nil || !slices.Equal(tags, []string{"podenv.dev/thing:1"}) {
		t.Errorf("tags = %v, %v", tags, err)
	}
	files, img := imagetest.Archive(t, out)
	for name, want := range map[string]imagetest.File{
		"usr/":                {Header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}},
		"usr/local/":          {Header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}},
		"usr/local/bin/":      {Header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}},
		"usr/local/bin/thing": {Header: &tar.Header{Typeflag: tar.TypeReg, Mode: 0o4755}, Data: []byte("#!program")},
		"etc/":                {Header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}},
		"etc/config":          {Header: &tar.Header{Typeflag: tar.TypeReg, Mode: 0o640}, Data: []byte("a: b\n")},
		"tmp/":                {Header: &tar.Header{Typeflag: tar.TypeDir, Mode: 0o1777}},
		"bin":                 {Header: &tar.Header{Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "usr/local/bin"}},
	} {
		got, ok := files[name]
		if !ok {
			t.Errorf("the image lacks %s", name)
			continue
		}
		if got.Typeflag != want.Typeflag || got.Mode != want.Mode || got.Linkname != want.Linkname || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s: type %c, mode %o, link %q, content %q", name, got.Typeflag, got.Mode, got.Linkname, got.Data)
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
		!slices.Equal(config.Config.Entrypoint, []string{"thing"}) || !slices.Equal(config.Config.Env, []string{SearchPath}) {
		t.Errorf("config = %+v", config)
	}
}

func TestSpecIsTheSameEachTime(t *testing.T) {
	files := []File{
		{Path: "/b", Mode: 0o644, Data: bytes.Repeat([]byte("b"), 1<<20)},
		{Path: "/a/c", Mode: 0o755, Data: []byte("c")},
		{Path: "/a/b", Link: "c"},
	}
	var outs [2]string
	for i := range outs {
		out := filepath.Join(t.TempDir(), "image.tar")
		if err := (Spec{Name: "podenv.dev/thing:1", Files: files}).Write(out); err != nil {
			t.Fatal(err)
		}
		outs[i] = read(t, out)
		slices.Reverse(files)
	}
	if outs[0] != outs[1] {
		t.Error("two images of the same files differ")
	}
}

func TestSpecRefusesABadSpec(t *testing.T) {
	file := func(path string) []File { return []File{{Path: path, Mode: 0o644}} }
	for _, tc := range []struct {
		name string
		spec Spec
		want string
	}{
		{"a relative path", Spec{Name: "podenv.dev/x:1", Files: file("bin/x")}, "clean absolute path"},
		{"a path that leaves the image", Spec{Name: "podenv.dev/x:1", Files: file("/../x")}, "clean absolute path"},
		{"the root", Spec{Name: "podenv.dev/x:1", Files: file("/")}, "clean absolute path"},
		{"a file twice", Spec{Name: "podenv.dev/x:1", Files: append(file("/x"), file("/x")...)}, "given twice"},
		{"a file in a file", Spec{Name: "podenv.dev/x:1", Files: append(file("/x"), file("/x/y")...)}, "not a directory"},
		{"a file that is not there", Spec{Name: "podenv.dev/x:1", Files: []File{{Path: "/x", Source: "/nonexistent/x"}}}, "no such file"},
		{"a folder for a file", Spec{Name: "podenv.dev/x:1", Files: []File{{Path: "/x", Source: "/"}}}, "not a regular file"},
		{"a name without a tag", Spec{Name: "podenv.dev/x", Files: file("/x")}, "podenv.dev/x"},
		{"a version that is no tag", Spec{Name: "podenv.dev/x:v1+2", Files: file("/x")}, "v1+2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "image.tar")
			write(t, out, "the one before")
			if err := tc.spec.Write(out); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Write = %v, want %q in it", err, tc.want)
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

func TestCachedWritesAnImageOncePerKey(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "thing-else-0123456789abcdef.tar")
	write(t, other, "an image whose name starts alike")
	keep := func(content string) (archive string, written bool) {
		t.Helper()
		archive, written, err := Cached(dir, "thing", digest.Of(content), Spec{Name: "podenv.dev/thing:1", Files: []File{{Path: "/x", Data: []byte(content)}}}.Write)
		if err != nil {
			t.Fatal(err)
		}
		return archive, written
	}
	first, written := keep("one")
	if !written {
		t.Error("the first image was not written")
	}
	if again, written := keep("one"); written || again != first {
		t.Errorf("the same key: %s, written: %v", again, written)
	}
	second, written := keep("two")
	if files, _ := imagetest.Archive(t, second); !written || string(files["x"].Data) != "two" {
		t.Errorf("another key: written: %v", written)
	}
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("the first image is still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("the image of another name is gone: %v", err)
	}
}

func TestSpecKeyGoesByContent(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "x")
	write(t, filepath.Join(dir, "b"), "x")
	write(t, filepath.Join(dir, "c"), "y")
	key := func(spec Spec) string {
		t.Helper()
		k, err := spec.Key()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	from := func(file string) Spec {
		return Spec{Name: "x", Files: []File{{Path: "/x", Source: filepath.Join(dir, file)}}}
	}
	if key(from("a")) != key(from("b")) {
		t.Error("the key depends on where a file was")
	}
	if key(from("a")) == key(from("c")) {
		t.Error("the key does not depend on a file's content")
	}
	other := from("a")
	other.Config.User = "1"
	if key(from("a")) == key(other) {
		t.Error("the key does not depend on the config")
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
