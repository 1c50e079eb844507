package nodeimage

import (
	"archive/tar"
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// debian is a small root file system, in the order in which mmdebstrap writes it.
var debian = []tar.Header{
	{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
	{Name: "./dev/console", Typeflag: tar.TypeChar, Mode: 0o600},
	{Name: "./etc/", Typeflag: tar.TypeDir, Mode: 0o755},
	{Name: "./etc/containerd/", Typeflag: tar.TypeDir, Mode: 0o711},
	{Name: "./etc/containerd/config.toml", Typeflag: tar.TypeReg, Mode: 0o644},
	{Name: "./etc/containerd/cri-base.json", Typeflag: tar.TypeReg, Mode: 0o644},
	{Name: "./etc/hostname", Typeflag: tar.TypeReg, Mode: 0o644},
	{Name: "./etc/shadow", Typeflag: tar.TypeReg, Mode: 0o640, Gid: 42},
	{Name: "./etc/systemd/", Typeflag: tar.TypeDir, Mode: 0o755},
	{Name: "./etc/systemd/journald.conf", Typeflag: tar.TypeReg, Mode: 0o644},
	{Name: "./etc/systemd/system/timers.target.wants/apt-daily.timer", Typeflag: tar.TypeSymlink, Linkname: "/usr/lib/systemd/system/apt-daily.timer"},
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
		if strings.HasSuffix(hdr.Name, criBase) {
			content = `{"process":{}}`
		}
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

var overlay = []file{
	{name: "kind/version", mode: 0o644, data: []byte("v1")},
	{name: "etc/containerd/config.toml", mode: 0o644, data: []byte("ours")},
	{name: "usr/sbin/init", link: "/usr/lib/systemd/systemd"},
	{name: "etc/kubernetes/manifests", mode: 0o755, dir: true},
}

func TestWriteBase(t *testing.T) {
	var out bytes.Buffer
	if err := writeBase(&out, bytes.NewReader(rootfsTar(t, debian, time.Now())), overlay); err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Content, Link string
		Mode          int64
		Gid           int
	}
	got := map[string]entry{}
	tr := tar.NewReader(&out)
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := got[hdr.Name]; twice {
			t.Errorf("%s is in the tar twice", hdr.Name)
		}
		if !hdr.ModTime.Equal(epoch) {
			t.Errorf("%s is dated %v", hdr.Name, hdr.ModTime)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got[hdr.Name] = entry{string(content), hdr.Linkname, hdr.Mode, hdr.Gid}
	}
	spec, err := containerdSpec([]byte(`{"process":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]entry{
		"etc/":                         {Mode: 0o755},
		"etc/containerd/":              {Mode: 0o711},
		"etc/containerd/config.toml":   {Content: "ours", Mode: 0o644},
		"etc/containerd/cri-base.json": {Content: string(spec), Mode: 0o644},
		"etc/kubernetes/":              {Mode: 0o755},
		"etc/kubernetes/manifests/":    {Mode: 0o755},
		"etc/shadow":                   {Content: "Debian's ./etc/shadow", Mode: 0o640, Gid: 42},
		"etc/systemd/":                 {Mode: 0o755},
		"etc/systemd/journald.conf":    {Content: "Debian's ./etc/systemd/journald.confReadKMsg=no\n", Mode: 0o644},
		"kind/":                        {Mode: 0o755},
		"kind/version":                 {Content: "v1", Mode: 0o644},
		"opt/":                         {Mode: 0o755},
		"opt/cni/":                     {Mode: 0o755},
		"opt/cni/bin/":                 {Mode: 0o755},
		"opt/cni/bin/ptp":              {Content: "Debian's ./usr/lib/cni/ptp", Mode: 0o755},
		"usr/":                         {Mode: 0o755},
		"usr/bin/mount":                {Content: "Debian's ./usr/bin/mount", Mode: 0o4755},
		"usr/bin/mount2":               {Link: "./usr/bin/mount", Mode: 0o4755},
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
	if err := writeBase(&first, bytes.NewReader(rootfsTar(t, debian, time.Now())), overlay); err != nil {
		t.Fatal(err)
	}
	if err := writeBase(&second, bytes.NewReader(rootfsTar(t, debian, time.Now().Add(-time.Hour))), reversed); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the tar depends on when, or in which order, it was made")
	}
}

func TestWriteBaseRefusesARootFileSystemThatIsNotWhatItKnows(t *testing.T) {
	without := func(name string) []tar.Header {
		return slices.DeleteFunc(slices.Clone(debian), func(h tar.Header) bool { return strings.HasSuffix(h.Name, name) })
	}
	for name, tc := range map[string]struct {
		raw     []byte
		wantErr string
	}{
		"without containerd's spec":   {rootfsTar(t, without("cri-base.json"), epoch), "has no etc/containerd/cri-base.json"},
		"with a link to what is gone": {rootfsTar(t, append(slices.Clone(debian), tar.Header{Name: "./usr/bin/x", Typeflag: tar.TypeLink, Linkname: "./usr/lib/cni/bandwidth"}), epoch), "hard link"},
		"cut off":                     {rootfsTar(t, debian, epoch)[:3300], "reading the root file system"},
	} {
		t.Run(name, func(t *testing.T) {
			checkError(t, writeBase(io.Discard, bytes.NewReader(tc.raw), nil), tc.wantErr)
		})
	}
}

func TestArchiveIsAnImage(t *testing.T) {
	raw := rootfsTar(t, debian, epoch)
	layer := func(w io.Writer) error { _, err := w.Write(raw); return err }
	sum, err := sumLayer(layer)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeArchive(&out, "podenv/node-base:test", sum, layer); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(nodeConfig, config.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 || len(config.RootFS.DiffIDs) != 1 {
		t.Fatalf("%d layers and %d diff IDs, want one of each", len(layers), len(config.RootFS.DiffIDs))
	}
	rc, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	got, err := sumLayer(func(w io.Writer) error { _, err := io.Copy(w, rc); return err })
	if err != nil {
		t.Fatal(err)
	}
	if got != sum || config.RootFS.DiffIDs[0].Hex != sum.hex {
		t.Errorf("layer %v with diff ID %s, want %v", got, config.RootFS.DiffIDs[0].Hex, sum)
	}
}

func TestDigestTellsListsApart(t *testing.T) {
	lists := map[string][]string{"none": {}, "empty": {""}, "one": {"ab"}, "two": {"a", "b"}, "swapped": {"b", "a"}}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		hash := digest(lists[name]...)
		if other, ok := seen[hash]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[hash] = name
	}
}
