package expand

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
	meta, template, ok := manifest.Template(object)
	if !ok {
		return workload{}, false
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	return workload{kind: kind, meta: *meta, pod: pod, templated: true}, true
}

// eachContainer visits the containers in the order in which they start.
func eachContainer(spec *corev1.PodSpec, visit func(containerType string, c *corev1.Container)) {
	for i := range spec.InitContainers {
		c, containerType := &spec.InitContainers[i], "init container"
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containerType = "sidecar"
		}
		visit(containerType, c)
	}
	for i := range spec.Containers {
		visit("container", &spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		visit("ephemeral container", (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}
