package debian

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/image"
)

func TestFilesReadsAPackage(t *testing.T) {
	root := t.TempDir()
	for file, content := range map[string]string{
		"DEBIAN/control": "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.com>\nDescription: x\n",
		"bin/x":          "program",
		"usr/share/x":    "data",
	} {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("x", filepath.Join(root, "bin", "y")); err != nil {
		t.Fatal(err)
	}
	deb := filepath.Join(t.TempDir(), "x.deb")
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "--build", root, deb).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v\n%s", err, out)
	}

	files, err := Files(t.Context(), deb)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]image.File{}
	for _, f := range files {
		found[f.Path] = f
	}
	if f := found["/usr/bin/x"]; !f.Mode.IsRegular() || string(f.Data) != "program" || f.Mode != 0o644 {
		t.Errorf("/bin/x came as %+v", f)
	}
	if f := found["/usr/bin/y"]; f.Link != "x" {
		t.Errorf("/bin/y came as %+v", f)
	}
	if f := found["/usr/share/x"]; string(f.Data) != "data" {
		t.Errorf("/usr/share/x came as %+v", f)
	}

	if _, err := Files(t.Context(), filepath.Join(root, "bin/x")); err == nil || !strings.Contains(err.Error(), "dpkg-deb") {
		t.Errorf("a file that is no package: %v", err)
	}
}

func TestReadTarResolvesHardLinks(t *testing.T) {
	pack := func(headers ...*tar.Header) *bytes.Reader {
		var b bytes.Buffer
		tw := tar.NewWriter(&b)
		for _, hdr := range headers {
			if err := tw.WriteHeader(hdr); err != nil {
				t.Fatal(err)
			}
			if _, err := tw.Write(bytes.Repeat([]byte("x"), int(hdr.Size))); err != nil {
				t.Fatal(err)
			}
		}
		if err := tw.Close(); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(b.Bytes())
	}
	program := &tar.Header{Name: "./bin/a", Typeflag: tar.TypeReg, Mode: 0o755, Size: 3}

	files, err := readTar(pack(program, &tar.Header{Name: "./sbin/b", Typeflag: tar.TypeLink, Linkname: "./bin/a"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || files[1].Path != "/usr/sbin/b" || string(files[1].Data) != "xxx" || files[1].Mode != 0o755 {
		t.Errorf("files = %+v", files)
	}
	if _, err := readTar(pack(&tar.Header{Name: "./b", Typeflag: tar.TypeLink, Linkname: "./a"})); err == nil || !strings.Contains(err.Error(), "does not come before") {
		t.Errorf("a hard link to nothing: %v", err)
	}
	if _, err := readTar(pack(&tar.Header{Name: "./dev/x", Typeflag: tar.TypeChar})); err == nil || !strings.Contains(err.Error(), "unexpected kind") {
		t.Errorf("a device: %v", err)
	}
}

func TestMergedMovesWhatUsrHas(t *testing.T) {
	for name, want := range map[string]string{
		"./":               "/",
		"./bin/x":          "/usr/bin/x",
		"./sbin":           "/usr/sbin",
		"./lib64/ld.so.2":  "/usr/lib64/ld.so.2",
		"./usr/bin/x":      "/usr/bin/x",
		"./etc/lib/x":      "/etc/lib/x",
		"./libexec/x":      "/libexec/x",
		"./../../bin/evil": "/usr/bin/evil",
	} {
		if got := merged(name); got != want {
			t.Errorf("merged(%q) = %q, want %q", name, got, want)
		}
	}
}
