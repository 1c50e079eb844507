package nodeimage

import (
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/testutil"
)

func TestCheckImagesNamesWhatKubeadmMisses(t *testing.T) {
	dir := t.TempDir()
	kubeadm := filepath.Join(dir, "kubeadm")
	testutil.WriteFile(t, kubeadm, `#!/bin/sh
[ "$*" = "config images list --kubernetes-version v1.33.13+podenv.2" ] || exit 1
echo registry.k8s.io/pause:3.10
echo registry.k8s.io/etcd:3.5.24-0
`)
	r := &build.Result{Version: "v1.33.13+podenv.2", Binaries: map[string]string{"kubeadm": kubeadm}}
	archive := func(ref string) string {
		out := filepath.Join(dir, strings.NewReplacer("/", "-", ":", "-").Replace(ref)+".tar")
		spec := image.Spec{Name: ref, Files: []image.File{{Path: "/x", Mode: 0o755, Data: []byte(ref)}}}
		if err := spec.Write(out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	archives := []string{archive("registry.k8s.io/pause:3.10")}
	err := checkImages(t.Context(), r, archives)
	testutil.CheckError(t, err, "asks for registry.k8s.io/etcd:3.5.24-0, which was not built; built are registry.k8s.io/pause:3.10")
	archives = append(archives, archive("registry.k8s.io/etcd:3.5.24-0"))
	testutil.CheckError(t, checkImages(t.Context(), r, archives), "")
}

// builtRelease is a build of v1.33.13 with the given binaries, and a tree with the versions of images.
func builtRelease(t *testing.T, binaries map[string]string) *build.Result {
	t.Helper()
	tree := t.TempDir()
	testutil.WriteFile(t, filepath.Join(tree, kubeadmConstants), `package constants
const DefaultEtcdVersion = "3.5.24-0"
const CoreDNSVersion = "v1.12.0"
const PauseVersion = "3.9"
`)
	return &build.Result{Version: "v1.33.13", Tree: &source.Tree{Dir: tree}, Binaries: binaries}
}

func TestBuildReadsNoArchiveOfAnImageThatExists(t *testing.T) {
	fakeCommands(t, map[string]string{"docker": "true"})
	bin := filepath.Join(t.TempDir(), "binary")
	testutil.WriteFile(t, bin, "x")
	r := builtRelease(t, map[string]string{"kubeadm": bin, "kubectl": bin, "kubelet": bin})
	parts := Parts{Base: "podenv/node-base:0123", Support: []string{"/none/etcd-0123.tar"}, Build: r}
	ref, err := Build(t.Context(), layout.Layout{Root: t.TempDir()}, &engine.Engine{}, parts, nil)
	if err != nil || !strings.HasPrefix(ref, "podenv/node:v1.33.13-") {
		t.Errorf("Build = %q, %v", ref, err)
	}
}

func TestNodeFilesWantsTheBinariesOfANode(t *testing.T) {
	r := builtRelease(t, map[string]string{"kubeadm": "/k", "kubectl": "/k"})
	_, err := nodeFiles(r)
	testutil.CheckError(t, err, "kubelet is missing: build all components first")
	r.Binaries["kubelet"] = "/k"
	files, err := nodeFiles(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		switch f.Path {
		case "/kind/version":
			if string(f.Data) != "v1.33.13" {
				t.Errorf("kind/version is %q", f.Data)
			}
		case containerdConfigFile:
			if !strings.Contains(string(f.Data), `"registry.k8s.io/pause:3.9"`) {
				t.Errorf("containerd does not use the release's pause image:\n%s", f.Data)
			}
		}
	}
}

func TestReferenceChangesWithAnythingThatGoesIn(t *testing.T) {
	dir := t.TempDir()
	bin, archive := filepath.Join(dir, "kubelet"), "pause-1.tar"
	testutil.WriteFile(t, bin, "1")
	refer := func(base, version, data string) string {
		t.Helper()
		ref, err := reference(base, version, []image.File{{Path: "/usr/bin/kubelet", Source: bin}, {Path: "/kind/version", Data: []byte(data)}}, []string{archive})
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
	testutil.WriteFile(t, bin, "2")
	changed("binaries", refer("base", "v1.33.13+podenv.2", "a"))
	archive = "pause-2.tar"
	changed("images", refer("base", "v1.33.13+podenv.2", "a"))
}
