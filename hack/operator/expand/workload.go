package expand

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	from := func(meta metav1.ObjectMeta, template *corev1.PodTemplateSpec) (workload, bool) {
		// A workload without a template is for the API server to refuse.
		if template == nil {
			template = &corev1.PodTemplateSpec{}
		}
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		return workload{kind: kind, meta: meta, pod: pod, templated: true}, true
	}
	switch o := object.(type) {
	case *corev1.Pod:
		return workload{kind: kind, meta: o.ObjectMeta, pod: o}, true
	case *corev1.PodTemplate:
		return from(o.ObjectMeta, &o.Template)
	case *corev1.ReplicationController:
		return from(o.ObjectMeta, o.Spec.Template)
	case *appsv1.Deployment:
		return from(o.ObjectMeta, &o.Spec.Template)
	case *appsv1.ReplicaSet:
		return from(o.ObjectMeta, &o.Spec.Template)
	case *appsv1.StatefulSet:
		return from(o.ObjectMeta, &o.Spec.Template)
	case *appsv1.DaemonSet:
		return from(o.ObjectMeta, &o.Spec.Template)
	case *batchv1.Job:
		return from(o.ObjectMeta, &o.Spec.Template)
	case *batchv1.CronJob:
		return from(o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template)
	}
	return workload{}, false
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
