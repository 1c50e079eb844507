package nodeimage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/source"
)

func TestCheckImagesNamesWhatKubeadmMisses(t *testing.T) {
	dir := t.TempDir()
	kubeadm := filepath.Join(dir, "kubeadm")
	writeFile(t, kubeadm, `#!/bin/sh
[ "$*" = "config images list --kubernetes-version v1.33.13+podenv.2" ] || exit 1
echo registry.k8s.io/pause:3.10
echo registry.k8s.io/etcd:3.5.24-0
`)
	if err := os.Chmod(kubeadm, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &build.Result{Version: "v1.33.13+podenv.2", Binaries: map[string]string{"kubeadm": kubeadm}}
	archive := func(ref string) string {
		out := filepath.Join(dir, strings.NewReplacer("/", "-", ":", "-").Replace(ref)+".tar")
		spec := build.ImageSpec{Name: ref, Files: []build.File{{Path: "/x", Mode: 0o755, Data: []byte(ref)}}}
		if err := build.StaticImage(spec, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	archives := []string{archive("registry.k8s.io/pause:3.10")}
	err := checkImages(t.Context(), r, archives)
	checkError(t, err, "asks for registry.k8s.io/etcd:3.5.24-0, which was not built; built are registry.k8s.io/pause:3.10")
	archives = append(archives, archive("registry.k8s.io/etcd:3.5.24-0"))
	checkError(t, checkImages(t.Context(), r, archives), "")
}

func TestNodeFilesWantsTheBinariesOfANode(t *testing.T) {
	tree := t.TempDir()
	writeFile(t, filepath.Join(tree, kubeadmConstants), `package constants
const DefaultEtcdVersion, CoreDNSVersion, PauseVersion = "3.5.24-0", "v1.12.0", "3.9"
`)
	r := &build.Result{Version: "v1.33.13", Tree: &source.Tree{Dir: tree}, Binaries: map[string]string{"kubeadm": "/k", "kubectl": "/k"}}
	_, err := nodeFiles(r)
	checkError(t, err, "there is no kubelet: build all components first")
	r.Binaries["kubelet"] = "/k"
	files, err := nodeFiles(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		switch f.name {
		case "kind/version":
			if string(f.data) != "v1.33.13" {
				t.Errorf("kind/version is %q", f.data)
			}
		case "etc/containerd/config.toml":
			if !strings.Contains(string(f.data), `"registry.k8s.io/pause:3.9"`) {
				t.Errorf("containerd does not use the release's pause image:\n%s", f.data)
			}
		}
	}
}

func TestReferenceChangesWithAnythingThatGoesIn(t *testing.T) {
	dir := t.TempDir()
	bin, archive := filepath.Join(dir, "kubelet"), filepath.Join(dir, "pause.tar")
	writeFile(t, bin, "1")
	writeFile(t, archive, "1")
	refer := func(base, version, data string) string {
		t.Helper()
		ref, err := reference(base, version, []file{{name: "usr/bin/kubelet", source: bin}, {name: "kind/version", data: []byte(data)}}, []string{archive})
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	first := refer("base", "v1.33.13+podenv.2", "a")
	if !strings.HasPrefix(first, "podenv/node:v1.33.13_podenv.2-") {
		t.Errorf("reference %s does not name the version", first)
	}
	if again := refer("base", "v1.33.13+podenv.2", "a"); again != first {
		t.Errorf("the same input is called %s and %s", first, again)
	}
	seen := map[string]string{first: "first"}
	changed := func(what, ref string) {
		t.Helper()
		if other, ok := seen[ref]; ok {
			t.Errorf("a change of the %s has the reference of %s", what, other)
		}
		seen[ref] = what
	}
	changed("base image", refer("other", "v1.33.13+podenv.2", "a"))
	changed("version", refer("base", "v1.33.13", "a"))
	changed("files", refer("base", "v1.33.13+podenv.2", "b"))
	writeFile(t, bin, "2")
	changed("binaries", refer("base", "v1.33.13+podenv.2", "a"))
	writeFile(t, archive, "2")
	changed("images", refer("base", "v1.33.13+podenv.2", "a"))
}
