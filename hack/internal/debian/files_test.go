package debian

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/testutil"
)

// entry is one of a tar; without a type it is a regular file with that content.
type entry struct {
	name    string
	content string
	kind    byte
	link    string
}

// rootfsTar packs a root file system in which the packages tool and libtool are installed,
// and more.
func rootfsTar(t *testing.T, more ...entry) string {
	t.Helper()
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, e := range append([]entry{
		{name: "./bin", kind: tar.TypeSymlink, link: "usr/bin"},
		{name: "./etc/alternatives/tool", kind: tar.TypeSymlink, link: "/usr/bin/tool"},
		{name: "./usr/bin/", kind: tar.TypeDir},
		{name: "./usr/bin/other", content: "another package's"},
		{name: "./usr/bin/tool", content: "program"},
		{name: "./usr/bin/tool-too", kind: tar.TypeLink, link: "./usr/bin/tool"},
		{name: "./usr/lib/libtool.so", kind: tar.TypeSymlink, link: "libtool.so.1"},
		{name: "./usr/lib/libtool.so.1", content: "library"},
		{name: "./var/lib/dpkg/info/libtool:amd64.list", content: "/.\n/lib\n/lib/libtool.so\n/lib/libtool.so.1\n"},
		{name: "./var/lib/dpkg/info/other.list", content: "/usr/bin/other\n"},
		{name: "./var/lib/dpkg/info/tool.list", content: "/.\n/bin\n/bin/tool\n/bin/tool-too\n/dev/tool\n/usr/share/man/tool.1.gz\n"},
	}, more...) {
		hdr := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Size: int64(len(e.content)), Mode: 0o755}
		if err := tw.WriteHeader(hdr); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFilesAreThoseThatDpkgListsForThePackages(t *testing.T) {
	f, l := newMirror(t, "1")
	f.Write("rootfs.tar", rootfsTar(t))
	got, err := Files(t.Context(), l, runtime.GOARCH, nil, "tool", "libtool")
	if err != nil {
		t.Fatal(err)
	}
	want := []image.File{
		{Path: "/usr/bin/tool", Mode: 0o755, Data: []byte("program")},
		{Path: "/usr/bin/tool-too", Mode: 0o755, Data: []byte("program")},
		{Path: "/usr/lib/libtool.so", Mode: fs.ModeSymlink | 0o755, Link: "libtool.so.1"},
		{Path: "/usr/lib/libtool.so.1", Mode: 0o755, Data: []byte("library")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestFilesOfAnotherArchitectureAreExtracted(t *testing.T) {
	f, l := newMirror(t, "1")
	f.Write("rootfs.tar", rootfsTar(t)) // without what only an installation makes it has more
	for range 2 {
		files, err := Files(t.Context(), l, "riscv64", nil, "systemd")
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 10 { // all, whatever dpkg lists
			t.Errorf("%d files: %v", len(files), files)
		}
	}
	calls := strings.Join(f.calls(), "\n")
	if want := "mmdebstrap --variant=extract --architectures=riscv64 --include=systemd=1 "; strings.Count(calls, want) != 1 || strings.Count(calls, "mmdebstrap -") != 1 {
		t.Errorf("want %q once in\n%s", want, calls)
	}
}

func TestFilesSayWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		tar      string
		packages []string
		wantErr  string
	}{
		"a package that is not there": {rootfsTar(t), []string{"tool", "lib", "kmod"}, "not installed: lib, kmod"},
		"a link to another package's": {
			rootfsTar(t, entry{name: "./usr/bin/x", kind: tar.TypeLink, link: "./usr/bin/other"}, entry{name: "./var/lib/dpkg/info/x.list", content: "/bin/x"}),
			[]string{"x"}, "/usr/bin/x: hard link to ./usr/bin/other",
		},
		"a device":               {rootfsTar(t, entry{name: "./dev/tool", kind: tar.TypeChar}), []string{"tool"}, "/dev/tool: unexpected kind of file"},
		"a tar that ends inside": {rootfsTar(t)[:1000], []string{"tool"}, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			f, l := newMirror(t, "1")
			f.Write("rootfs.tar", tc.tar)
			_, err := Files(t.Context(), l, runtime.GOARCH, nil, tc.packages...)
			testutil.CheckError(t, err, tc.wantErr)
			testutil.CheckError(t, err, "reading "+l.Cache("rootfs"))
		})
	}
}

func TestMergedPathMovesWhatUsrHas(t *testing.T) {
	for name, want := range map[string]string{
		"/.":              "/",
		"/bin/x":          "/usr/bin/x",
		"/sbin":           "/usr/sbin",
		"/lib64/ld.so.2":  "/usr/lib64/ld.so.2",
		"/usr/bin/x":      "/usr/bin/x",
		"/etc/lib/x":      "/etc/lib/x",
		"/libexec/x":      "/libexec/x",
		"/../../bin/evil": "/usr/bin/evil",
	} {
		if got := mergedPath(name); got != want {
			t.Errorf("mergedPath(%q) = %q, want %q", name, got, want)
		}
	}
}
