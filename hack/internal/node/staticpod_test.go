package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/testutil"
)

// Two pushes in a row: the second comes before the kubelet has rewritten the pod
// that the first deleted.
func TestAPushWaitsForTheMirrorPodThatAnEarlierOneDeleted(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-apiserver-node"}}
	client := fake.NewClientset(pod)
	looks := 0
	client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		looks++
		return looks == 1, nil, apierrors.NewNotFound(v1.Resource("pods"), pod.Name)
	})
	s := &staticPod{target: &target{name: "kube-apiserver", node: "node", client: client}}
	got, err := s.mirrorPod(t.Context())
	if err != nil || got.Name != pod.Name || looks != 2 {
		t.Errorf("got %v, %v after %d looks", got, err, looks)
	}
}

func TestAChangedManifestIsForRootAloneAndLeavesNoOldTag(t *testing.T) {
	const image = "registry.k8s.io/kube-apiserver:v1.33.13"
	docker := testutil.NewCommands(t, "cat")
	docker.Script("docker", `case "$*" in
*" install "*) cat > $F/manifest;;
*" cat /etc/kubernetes/manifests/kube-apiserver.yaml") cat $F/manifest;;
esac`)
	l := layout.Layout{Root: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(l.Output(), "clusters", "podenv"), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Find(t.Context(), l, &engine.Engine{}, "podenv")
	if err != nil {
		t.Fatal(err)
	}
	p := &staticPod{target: &target{Cluster: c, name: "kube-apiserver", node: "node"}, uid: "1"}
	manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-apiserver}\nspec: {containers: [{name: kube-apiserver, image: \"" + image + "-at5\"}]}\n"
	if err := p.writeManifest(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	if err := p.cleanUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		"docker exec --interactive node install":              "--mode=0600 /dev/stdin /etc/kubernetes/manifests/.kube-apiserver.yaml.new",
		"docker exec node ctr --namespace=k8s.io images rm":   image + "-at5",
		"docker exec node ctr --namespace=k8s.io images tag ": "",
	} {
		calls := docker.Calls(strings.TrimSpace(call))
		if len(calls) != 1 || want != "" && calls[0] != call+" "+want {
			t.Errorf("calls %q, want one %s %s", calls, call, want)
		}
	}
}
