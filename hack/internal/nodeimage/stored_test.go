package nodeimage

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/image/imagetest"
	"podenv.dev/hack/internal/testutil"
)

func TestStoredNodeImageIsTheSameEachTimeAndNeedsNoEngine(t *testing.T) {
	var images [2]v1.Image
	for i := range images {
		fakeCommands(t, map[string]string{
			"go":     strings.Replace(goBuilds(t), `' "$2" >`, `' "$(basename "$2")" >`, 1),
			"docker": "exit 1",
			"mmdebstrap": `for arg; do
	case $arg in
	*/rootfs.tar) tar -cf "$arg" -C / etc/hostname ;;
	"--customize-hook=download /var/lib/dpkg/status "*) : >"${arg##* }" ;;
	esac
done`,
			"dpkg-query": `case "$*" in *--admindir=*) grep -v '^#' ` + filepath.Join(fakeRepository(t).Root, packagesLock) + ` ;; *) echo mmdebstrap installed ;; esac`,
		})
		l := fakeRepository(t)
		kubeadm := filepath.Join(t.TempDir(), "kubeadm")
		testutil.WriteFile(t, kubeadm, "#!/bin/sh\necho registry.k8s.io/pause:3.9\n")
		r := builtRelease(t, map[string]string{"kubeadm": kubeadm, "kubectl": kubeadm, "kubelet": kubeadm})
		archive := func(ref string) string {
			file, _, err := image.Cached(t.TempDir(), "x", digest.Of(ref), image.Spec{Name: ref, Files: image.MinimalFiles()}.Write)
			if err != nil {
				t.Fatal(err)
			}
			return file
		}
		s, err := Stored(t.Context(), l, Parts{Build: r, Support: []string{archive("registry.k8s.io/pause:3.9")}},
			[]string{archive("podenv.dev/busybox:1")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if images[i], err = s.Write(t.Context(), t.TempDir(), "node"); err != nil {
			t.Fatal(err)
		}
	}
	if diff, err := image.Difference(images[0], images[1]); diff != "" || err != nil {
		t.Errorf("two builds differ: %s, %v", diff, err)
	}
	layers, err := images[0].Layers()
	if err != nil || len(layers) != 4 {
		t.Fatalf("%d layers, %v; want the base, Kubernetes, and two archives", len(layers), err)
	}
	files := map[string]imagetest.File{}
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(files, imagetest.Tar(t, r))
	}
	for _, want := range []string{"usr/bin/kubelet", "kind/version", "kind/bin/import-images.sh", "etc/systemd/system/podenv-images.service",
		"etc/systemd/system/multi-user.target.wants/podenv-images.service", "usr/local/bin/containerd"} {
		if _, ok := files[want]; !ok {
			t.Errorf("the image lacks %s", want)
		}
	}
	config, err := images[0].ConfigFile()
	if err != nil || config.Config.Labels[VersionLabel] != "v1.33.13" || config.Config.StopSignal != nodeConfig.StopSignal {
		t.Errorf("config = %+v, %v", config, err)
	}
}

func TestANodeImportsTheImagesOnce(t *testing.T) {
	_, calls := fakeCommands(t, map[string]string{"ctr": "true"})
	root := t.TempDir()
	for name, content := range map[string]string{
		// as kind writes it on ZFS, with what --verify-images adds
		"etc/containerd/config.toml": strings.ReplaceAll(string(containerdConfig("p")), `"overlayfs"`, `"native"`) +
			"[[plugins.\"io.containerd.transfer.v1.local\".unpack_config]]\n  snapshotter = \"overlayfs\"\n",
		"kind/images/a.tar": "a", "kind/images/b.tar": "b", "var/lib/containerd/x": "",
	} {
		testutil.WriteFile(t, filepath.Join(root, name), content)
	}
	run := func() error { return exec.Command("bash", "files/kind/bin/import-images.sh", root).Run() }
	for range 2 {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	got := calls()
	slices.Sort(got)
	want := "ctr --namespace=k8s.io images import --snapshotter=native " + root + "/kind/images/"
	if !slices.Equal(got, []string{want + "a.tar", want + "b.tar"}) {
		t.Errorf("calls: %q", got)
	}
	fakeCommands(t, map[string]string{"ctr": "exit 1"})
	imported := filepath.Join(root, "var/lib/containerd/podenv-images-imported")
	if err := os.Remove(imported); err != nil {
		t.Fatal(err)
	}
	if err := run(); err == nil {
		t.Error("a failed import is none")
	}
	if _, err := os.Stat(imported); err == nil {
		t.Error("a failed import is not tried again")
	}
}
