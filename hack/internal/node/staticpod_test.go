package node

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
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
