package nodeimage

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/image/imagetest"
	"podenv.dev/hack/internal/testutil"
)

// smallRoot is a small root file system, in the order in which mmdebstrap writes it.
var smallRoot = []tar.Header{
	{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
	{Name: "./dev/console", Typeflag: tar.TypeChar, Mode: 0o600},
	{Name: "./etc/", Typeflag: tar.TypeDir, Mode: 0o755},
	{Name: "./etc/containerd/", Typeflag: tar.TypeDir, Mode: 0o711},
	{Name: "./etc/containerd/config.toml", Typeflag: tar.TypeReg, Mode: 0o644},
	{Name: "./etc/hostname", Typeflag: tar.TypeReg, Mode: 0o644},
	{Name: "./etc/shadow", Typeflag: tar.TypeReg, Mode: 0o640, Gid: 42},
	{Name: "./etc/systemd/", Typeflag: tar.TypeDir, Mode: 0o755},
	{Name: "./etc/systemd/journald.conf", Typeflag: tar.TypeReg, Mode: 0o644},
	{Name: "./etc/systemd/system/timers.target.wants/apt-daily.timer", Typeflag: tar.TypeSymlink, Linkname: "/usr/lib/systemd/system/apt-daily.timer"},
	{Name: "./usr/bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755},
	{Name: "./usr/bin/mount", Typeflag: tar.TypeReg, Mode: 0o4755},
	{Name: "./usr/bin/mount2", Typeflag: tar.TypeLink, Linkname: "./usr/bin/mount", Mode: 0o4755},
	{Name: "./usr/lib/cni/bandwidth", Typeflag: tar.TypeReg, Mode: 0o755},
	{Name: "./usr/lib/cni/ptp", Typeflag: tar.TypeReg, Mode: 0o755},
	{Name: "./usr/lib/x86_64-linux-gnu/perl/5.36.0/B.so", Typeflag: tar.TypeReg, Mode: 0o644},
	{Name: "./usr/lib/x86_64-linux-gnu/perl-base/strict.pm", Typeflag: tar.TypeReg, Mode: 0o644},
	{Name: "./usr/share/doc/libc6/copyright", Typeflag: tar.TypeReg, Mode: 0o644},
	{Name: "./var/log/", Typeflag: tar.TypeDir, Mode: 0o755},
	{Name: "./var/log/dpkg.log", Typeflag: tar.TypeReg, Mode: 0o644},
}

// rootfsTar packs headers, with content that says whose it is; all is dated when.
func rootfsTar(t testing.TB, headers []tar.Header, when time.Time) []byte {
	t.Helper()
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, hdr := range headers {
		content := "Debian's " + hdr.Name
		hdr.ModTime = when
		if hdr.Typeflag == tar.TypeReg {
			hdr.Size = int64(len(content))
		} else {
			content = ""
		}
		if err := tw.WriteHeader(&hdr); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var overlay = []image.File{
	{Path: "/kind/version", Mode: 0o644, Data: []byte("v1")},
	{Path: "/etc/containerd/config.toml", Mode: 0o644, Data: []byte("ours")},
	{Path: "/usr/sbin/init", Link: "/usr/lib/systemd/systemd"},
	{Path: "/etc/kubernetes/manifests", Mode: fs.ModeDir | 0o755},
	{Path: "/opt/cni/bin", Mode: fs.ModeDir | 0o755},
}

func TestWriteBase(t *testing.T) {
	var out bytes.Buffer
	if err := writeBase(&out, bytes.NewReader(rootfsTar(t, smallRoot, time.Now())), overlay); err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Content, Link string
		Mode          int64
		Gid           int
	}
	got := map[string]entry{}
	for name, f := range imagetest.Tar(t, &out) {
		if !f.ModTime.Equal(image.Epoch) {
			t.Errorf("%s is dated %v", name, f.ModTime)
		}
		got[name] = entry{string(f.Data), f.Linkname, f.Mode, f.Gid}
	}
	want := map[string]entry{
		"etc/":                       {Mode: 0o755},
		"etc/containerd/":            {Mode: 0o711},
		"etc/containerd/config.toml": {Content: "ours", Mode: 0o644},
		"etc/kubernetes/":            {Mode: 0o755},
		"etc/kubernetes/manifests/":  {Mode: 0o755},
		"etc/shadow":                 {Content: "Debian's ./etc/shadow", Mode: 0o640, Gid: 42},
		"etc/systemd/":               {Mode: 0o755},
		"etc/systemd/journald.conf":  {Content: "Debian's ./etc/systemd/journald.conf", Mode: 0o644},
		"kind/":                      {Mode: 0o755},
		"kind/version":               {Content: "v1", Mode: 0o644},
		"opt/":                       {Mode: 0o755},
		"opt/cni/":                   {Mode: 0o755},
		"opt/cni/bin/":               {Mode: 0o755},
		"opt/cni/bin/ptp":            {Content: "Debian's ./usr/lib/cni/ptp", Mode: 0o755},
		"usr/":                       {Mode: 0o755},
		"usr/bin/mount":              {Content: "Debian's ./usr/bin/mount", Mode: 0o4755},
		"usr/bin/mount2":             {Link: "./usr/bin/mount", Mode: 0o4755},
		"usr/lib/x86_64-linux-gnu/perl-base/strict.pm": {Content: "Debian's ./usr/lib/x86_64-linux-gnu/perl-base/strict.pm", Mode: 0o644},
		"usr/sbin/":     {Mode: 0o755},
		"usr/sbin/init": {Link: "/usr/lib/systemd/systemd", Mode: 0o777},
		"var/log/":      {Mode: 0o755},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("base image (-want +got):\n%s", diff)
	}
}

func TestEqualContentMakesEqualBaseImages(t *testing.T) {
	var first, second bytes.Buffer
	reversed := slices.Clone(overlay)
	slices.Reverse(reversed)
	if err := writeBase(&first, bytes.NewReader(rootfsTar(t, smallRoot, time.Now())), overlay); err != nil {
		t.Fatal(err)
	}
	if err := writeBase(&second, bytes.NewReader(rootfsTar(t, smallRoot, time.Now().Add(-time.Hour))), reversed); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the tar depends on when, or in which order, it was made")
	}
}

func TestWriteBaseRefusesARootFileSystemThatIsNotWhatItKnows(t *testing.T) {
	for name, tc := range map[string]struct {
		raw     []byte
		wantErr string
	}{
		"with a link to what is gone": {rootfsTar(t, append(slices.Clone(smallRoot), tar.Header{Name: "./usr/bin/x", Typeflag: tar.TypeLink, Linkname: "./usr/lib/cni/bandwidth"}), image.Epoch), "hard link"},
		"cut off":                     {rootfsTar(t, smallRoot, image.Epoch)[:3300], "reading the root file system"},
	} {
		t.Run(name, func(t *testing.T) {
			testutil.CheckError(t, writeBase(io.Discard, bytes.NewReader(tc.raw), nil), tc.wantErr)
		})
	}
}

func TestTheBaseImageSaysNothingOfThisMachine(t *testing.T) {
	root := []tar.Header{
		{Name: "./etc/apt/sources.list", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "./etc/machine-id", Typeflag: tar.TypeReg, Mode: 0o444},
		{Name: "./root/.ssh/", Typeflag: tar.TypeDir, Mode: 0o700},
	}
	var out bytes.Buffer
	if err := writeBase(&out, bytes.NewReader(rootfsTar(t, root, time.Now())), services()); err != nil {
		t.Fatal(err)
	}
	files := imagetest.Tar(t, &out)
	if got := string(files["etc/apt/sources.list"].Data); !strings.HasPrefix(got, "#") || strings.Count(got, "\n") != 1 {
		t.Errorf("the mirrors are %q, want none", got)
	}
	for _, name := range []string{"etc/machine-id", "root/.ssh/"} {
		if _, ok := files[name]; ok {
			t.Errorf("the image has %s", name)
		}
	}
}
