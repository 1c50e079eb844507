package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/testutil"
)

// Two pushes in a row: the first has deleted the mirror pod, and the kubelet may take 90 seconds to create it
// again. Of a pod that somebody edited by hand there can be an older folder.
func TestAPushNeedsNoMirrorPod(t *testing.T) {
	testutil.NewCommands(t).Script("docker", `case "$*" in
"exec node sh -c ls -dt /var/log/pods/kube-system_kube-apiserver-node_*")
	echo /var/log/pods/kube-system_kube-apiserver-node_new
	echo /var/log/pods/kube-system_kube-apiserver-node_old;;
esac`)
	p := &staticPod{target: &target{Cluster: someCluster(t), name: "kube-apiserver", node: "node"}}
	p.oldManifest = "{apiVersion: v1, kind: Pod, metadata: {name: kube-apiserver}, spec: {containers: [{name: kube-apiserver, image: i}]}}"
	if err := p.stage(t.Context(), change{gates: map[string]bool{"EnvFiles": true}}, cluster.State{}); err != nil {
		t.Fatal(err)
	}
	if got := podUID(p.newManifest); got != "new" {
		t.Errorf("the pod has the UID %q", got)
	}
}

// A change and its reversal both give the image a tag, as each makes a container.
func TestAChangedManifestIsForRootAloneAndLeavesNoOldTag(t *testing.T) {
	const image = "registry.k8s.io/kube-apiserver:v1.33.13"
	docker := testutil.NewCommands(t, "cat")
	docker.Script("docker", `case "$*" in
*" install "*) cat > $F/manifest;;
*" cat /etc/kubernetes/manifests/kube-apiserver.yaml") cat $F/manifest;;
esac`)
	p := &staticPod{target: &target{Cluster: someCluster(t), name: "kube-apiserver", node: "node"}, uid: "1"}
	write := func(image string) (written string) {
		t.Helper()
		manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-apiserver}\nspec: {containers: [{name: kube-apiserver, image: \"" + image + "\"}]}\n"
		if err := p.writeManifest(t.Context(), manifest); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(docker.Dir, "manifest"))
		if err == nil {
			written, err = podImage(string(data), p.name)
		}
		if err != nil || written == image {
			t.Fatalf("the new image is %q, %v", written, err)
		}
		return written
	}
	changed := write(image + "-at5")
	write(image)
	if err := p.cleanUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string][]string{
		"docker exec --interactive node install":            slices.Repeat([]string{" --mode=0600 /dev/stdin /etc/kubernetes/manifests/.kube-apiserver.yaml.new"}, 2),
		"docker exec node ctr --namespace=k8s.io images rm": {" " + image + "-at5 " + changed},
	} {
		var calls []string
		for _, line := range docker.Calls(call) {
			calls = append(calls, strings.TrimPrefix(line, call))
		}
		if !slices.Equal(calls, want) {
			t.Errorf("%s: calls %q, want %q", call, calls, want)
		}
	}
}

// someCluster returns a cluster of which there is a folder.
func someCluster(t *testing.T) *cluster.Cluster {
	l := layout.Layout{Root: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(l.Output(), "clusters", "podenv"), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Find(t.Context(), l, &engine.Engine{}, "podenv")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
