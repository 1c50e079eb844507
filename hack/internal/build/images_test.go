package build

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/image/imagetest"
	"podenv.dev/hack/internal/layout"
)

// withoutProxy are the images without files from Debian.
var withoutProxy = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}

func TestImagesHoldTheBinaryThatKubeadmStarts(t *testing.T) {
	l, tree := newTree(t, func(dir string) { editWord(dir, "word", "patched") })
	r, err := Binaries(t.Context(), l, tree, runtime.GOARCH, append([]string{"kubelet"}, withoutProxy...), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Images(t.Context(), l, r, nil); err != nil {
		t.Fatal(err)
	}
	if len(r.Images) != len(withoutProxy) {
		t.Errorf("Images = %v, want one for each of %v", r.Images, withoutProxy)
	}
	for _, c := range withoutProxy {
		want := "registry.k8s.io/" + c + ":v1.33.13_podenv.1"
		if tags, err := image.Tags(r.Images[c]); err != nil || !slices.Equal(tags, []string{want}) {
			t.Errorf("%s: tags %v, %v, want %s", c, tags, err, want)
		}
		files, img := imagetest.Archive(t, r.Images[c])
		if got := files["usr/local/bin/"+c]; got.Header == nil || string(got.Data) != read(t, r.Binaries[c]) || got.Mode != 0o755 {
			t.Errorf("%s: its image does not have the binary in /usr/local/bin", c)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		// kubeadm's manifests start the program by its bare name.
		if !slices.ContainsFunc(config.Config.Env, func(e string) bool {
			return slices.Contains(strings.Split(strings.TrimPrefix(e, "PATH="), ":"), "/usr/local/bin")
		}) {
			t.Errorf("%s: /usr/local/bin is not in PATH: %v", c, config.Config.Env)
		}
	}
}

func TestImagesArePackedAgainOnlyIfTheBinaryChanged(t *testing.T) {
	l, tree := newTree(t)
	pack := func() map[string]os.FileInfo {
		t.Helper()
		r, err := Binaries(t.Context(), l, tree, runtime.GOARCH, withoutProxy, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := Images(t.Context(), l, r, nil); err != nil {
			t.Fatal(err)
		}
		infos := map[string]os.FileInfo{}
		for c, file := range r.Images {
			if infos[c], err = os.Stat(file); err != nil {
				t.Fatal(err)
			}
		}
		return infos
	}
	same := func(a, b map[string]os.FileInfo) bool {
		for c := range a {
			if !os.SameFile(a[c], b[c]) {
				return false
			}
		}
		return true
	}

	edit(t, tree) // the first edit changes the stamp
	first := pack()
	if !same(first, pack()) {
		t.Error("images were packed again with nothing changed")
	}
	// A comment changes the tree, but not the binaries.
	write(t, filepath.Join(tree.Dir, "NOTES.md"), "hello")
	if !same(first, pack()) {
		t.Error("images were packed again for the same binaries")
	}
	if err := editWord(tree.Dir, "word", "edited"); err != nil {
		t.Fatal(err)
	}
	second := pack()
	if same(first, second) {
		t.Error("images were kept although the binaries changed")
	}
	if left, err := filepath.Glob(filepath.Join(l.Build("v1.33"), "images", "*")); err != nil || len(left) != len(second) {
		t.Errorf("images %v, %v; want one for each component", left, err)
	}
}

func TestImagesAreTheSameFromTwoBuilds(t *testing.T) {
	var archives [2]string
	for i := range archives {
		l, tree := newTree(t)
		r, err := Binaries(t.Context(), l, tree, runtime.GOARCH, []string{"kube-apiserver"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := Images(t.Context(), l, r, nil); err != nil {
			t.Fatal(err)
		}
		archives[i] = read(t, r.Images["kube-apiserver"])
	}
	if archives[0] != archives[1] {
		t.Error("the same tree in two folders makes two images")
	}
}

func TestImagesOfAnotherArchitectureSaySo(t *testing.T) {
	l, tree := newTree(t)
	foreign := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	r, err := Binaries(t.Context(), l, tree, foreign, []string{"kube-apiserver"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Images(t.Context(), l, r, nil); err != nil {
		t.Fatal(err)
	}
	_, img := imagetest.Archive(t, r.Images["kube-apiserver"])
	if config, err := img.ConfigFile(); err != nil || config.Architecture != foreign {
		t.Errorf("the image is of %s, not %s: %v", config.Architecture, foreign, err)
	}
}

// readServer reads a server tarball as kind v0.33.0 does: every file below one folder, whatever
// its mode.
func readServer(t *testing.T, file string) map[string]imagetest.File {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return imagetest.Tar(t, zr)
}

func TestServerTarballIsWhatKindReads(t *testing.T) {
	l, tree := newTree(t, func(dir string) { editWord(dir, "word", "patched") })
	r, err := Binaries(t.Context(), l, tree, runtime.GOARCH, Components, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ServerTarball(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "build the images first") {
		t.Errorf("ServerTarball without images: %v", err)
	}
	for _, c := range ImageComponents {
		r.Images[c] = filepath.Join(t.TempDir(), c+".tar")
		spec := image.Spec{Name: ImageName(c, r.Version), Files: []image.File{{Path: "/x", Source: r.Binaries[c]}}}
		if err := spec.Write(r.Images[c]); err != nil {
			t.Fatal(err)
		}
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ServerTarball(interrupted, r, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("ServerTarball after Ctrl-C: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(r.Dir, "kubernetes-server*")); err != nil || len(left) > 0 {
		t.Errorf("after Ctrl-C there are %v, %v", left, err)
	}
	out, err := ServerTarball(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, packed := readServer(t, out), read(t, out)

	raw := strings.TrimSpace(string(files["kubernetes/version"].Data))
	if v, err := version.ParseSemantic(raw); err != nil || raw != "v1.33.13+podenv.1" {
		t.Errorf("version %q: %v, %v", raw, v, err)
	}
	for _, c := range Components {
		got := files["kubernetes/server/bin/"+c]
		if got.Header == nil || got.Mode != 0o755 || got.Typeflag != tar.TypeReg || string(got.Data) != read(t, r.Binaries[c]) {
			t.Errorf("the tarball's %s is not the binary", c)
		}
	}
	for _, c := range ImageComponents {
		if got := string(files["kubernetes/server/bin/"+c+".docker_tag"].Data); got != "v1.33.13_podenv.1\n" {
			t.Errorf("%s.docker_tag has %q", c, got)
		}
		archive := filepath.Join(t.TempDir(), c+".tar")
		write(t, archive, string(files["kubernetes/server/bin/"+c+".tar"].Data))
		tags, err := image.Tags(archive)
		if err != nil || len(tags) != 1 {
			t.Fatalf("%s.tar has the names %v, %v, want one", c, tags, err)
		}
		// kind removes the architecture from the repository name. kubeadm uses the rest.
		repository, tag, _ := strings.Cut(tags[0], ":")
		if got := strings.TrimSuffix(repository, "-"+runtime.GOARCH) + ":" + tag; got != ImageName(c, r.Version) || !strings.HasSuffix(repository, "-"+runtime.GOARCH) {
			t.Errorf("%s.tar has the name %s", c, tags[0])
		}
	}
	if left, err := filepath.Glob(filepath.Join(r.Dir, "work", "server-*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}

	if _, err := ServerTarball(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	if read(t, out) != packed {
		t.Error("two tarballs of the same build differ")
	}
}

func TestProxyPackagesArePinned(t *testing.T) {
	if _, err := debian.Pinned(layout.MustFind(), proxyPackages...); err != nil {
		t.Error(err)
	}
}

func TestKubeProxyNeedsPins(t *testing.T) {
	_, err := ComponentImage(t.Context(), layout.Layout{Root: t.TempDir()}, "kube-proxy", "v1.33.13", "x", nil)
	if err == nil || !strings.Contains(err.Error(), "image registry.k8s.io/kube-proxy:v1.33.13: no Debian packages are pinned") {
		t.Errorf("err = %v", err)
	}
}

func TestProxyFilesPutTheWrapperInFrontOfIptables(t *testing.T) {
	files := proxyFiles()
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		if !slices.ContainsFunc(files, func(f image.File) bool { return f.Path == "/usr/sbin/"+name && f.Link == path.Base(wrapper) }) {
			t.Errorf("%s does not lead to the wrapper", name)
		}
	}
}

func TestKubeProxyHasProgramsLibrariesAndTerms(t *testing.T) {
	for _, tc := range []struct {
		path string
		kept bool
	}{
		{"/usr/sbin/xtables-nft-multi", true},
		{"/usr/lib/x86_64-linux-gnu/libc.so.6", true},
		{"/usr/lib/x86_64-linux-gnu/xtables/libxt_comment.so", true},
		{"/etc/protocols", true},
		{"/usr/share/doc/iptables/copyright", true},
		{"/usr/share/doc/iptables/changelog.gz", false},
		{"/usr/share/man/man8/iptables.8.gz", false},
		{"/usr/lib/x86_64-linux-gnu/gconv/EUC-JP.so", false},
		{"/usr/lib/systemd/system/nftables.service", false},
	} {
		got := runtimeFiles([]image.File{{Path: tc.path, Mode: 0o644}})
		if (len(got) == 1) != tc.kept {
			t.Errorf("runtimeFiles(%s) = %v, want it kept: %v", tc.path, got, tc.kept)
		}
	}
}
