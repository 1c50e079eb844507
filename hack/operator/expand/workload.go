package expand

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podenv.dev/hack/operator/manifest"
)

// workload is an object that pods are made from, or a pod.
type workload struct {
	kind string
	meta metav1.ObjectMeta // of the object
	// pod is made from the template; it is the object itself where that is a pod.
	pod *corev1.Pod
	// templated says that a controller gives the pod its name and adds labels.
	templated bool
}

// workloadOf reports false for a kind without pods.
func workloadOf(object runtime.Object, kind string) (workload, bool) {
	if pod, ok := object.(*corev1.Pod); ok {
		return workload{kind: kind, meta: pod.ObjectMeta, pod: pod}, true
	}
	meta, pod, ok := manifest.Pod(object)
	if !ok {
		return workload{}, false
	}
	return workload{kind: kind, meta: *meta, pod: pod, templated: true}, true
}

// typeOf is the type of a container as users know it.
func typeOf(c *corev1.Container, t podutil.ContainerType) string {
	switch {
	case t == podutil.EphemeralContainers:
		return "ephemeral container"
	case t == podutil.Containers:
		return "container"
	case podutil.IsRestartableInitContainer(c):
		return "sidecar"
	default:
		return "init container"
	}
}
