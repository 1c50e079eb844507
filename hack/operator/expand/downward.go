package expand

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	corepods "k8s.io/kubernetes/pkg/apis/core/pods"
	"k8s.io/kubernetes/pkg/fieldpath"
)

// value is what became of a variable's source.
type value struct {
	text string
	// unknown, fails and unset say why there is no text; at most one is not empty.
	unknown, fails, unset string
}

const onStart = "known when the pod runs"

// field is what a fieldRef takes from the pod.
func (w *workload) field(ref *corev1.ObjectFieldSelector) value {
	// Names of the past, such as spec.host, stand for those of today.
	fieldPath, _, err := corepods.ConvertDownwardAPIFieldLabel(orDefault(ref.APIVersion, "v1"), ref.FieldPath, "")
	if err != nil {
		return value{fails: err.Error()}
	}
	path, key, isKey := fieldpath.SplitMaybeSubscriptedPath(fieldPath)
	if path == "metadata.labels" || path == "metadata.annotations" {
		return w.mapField(path, key, isKey, fieldPath)
	}
	known := func(s string) value {
		if s == "" {
			return value{unknown: onStart}
		}
		return value{text: s}
	}
	switch fieldPath {
	case "metadata.name", "metadata.uid":
		if w.templated {
			return value{unknown: onStart}
		}
		text, err := fieldpath.ExtractFieldPathAsString(w.pod, fieldPath)
		if err != nil {
			return value{fails: err.Error()}
		}
		return known(text)
	case "metadata.namespace":
		return known(w.meta.Namespace)
	case "spec.nodeName":
		return known(w.pod.Spec.NodeName)
	case "spec.serviceAccountName":
		// What admission puts there.
		spec := &w.pod.Spec
		return value{text: orDefault(spec.ServiceAccountName, orDefault(spec.DeprecatedServiceAccount, "default"))}
	case "status.hostIP":
		return known(w.pod.Status.HostIP)
	case "status.podIP":
		return known(w.pod.Status.PodIP)
	case "status.hostIPs", "status.podIPs":
		return value{unknown: onStart}
	}
	return value{fails: fmt.Sprintf("fieldPath %q is not supported", ref.FieldPath)}
}

// mapField is a label or an annotation, or all of them where isKey is false. What
// is not in a template may still be added by the controller.
func (w *workload) mapField(path, key string, isKey bool, full string) value {
	set := w.pod.Labels
	if path == "metadata.annotations" {
		set = w.pod.Annotations
	}
	if _, ok := set[key]; w.templated && (!isKey || !ok) {
		return value{unknown: "the controller may add to the template's; " + onStart}
	}
	text, err := fieldpath.ExtractFieldPathAsString(w.pod, full)
	if err != nil {
		return value{fails: err.Error()}
	}
	return value{text: text}
}

// resource is what a resourceFieldRef takes from a container's resources. What the
// manifest leaves out depends on the namespace's LimitRange and on the node.
func (w *workload) resource(ref *corev1.ResourceFieldSelector, container *corev1.Container) value {
	if ref.ContainerName != "" {
		container = nil
		for c := range podutil.ContainerIter(&w.pod.Spec, podutil.AllContainers) {
			if c.Name == ref.ContainerName {
				container = c
			}
		}
		if container == nil {
			return value{fails: fmt.Sprintf("the pod has no container %q", ref.ContainerName)}
		}
	}
	declared := container.DeepCopy()
	kind, name, _ := strings.Cut(ref.Resource, ".")
	resourceName := corev1.ResourceName(name)
	limit, isLimited := declared.Resources.Limits[resourceName]
	_, isRequested := declared.Resources.Requests[resourceName]
	if kind == "requests" && !isRequested && isLimited {
		// The API server's default.
		if declared.Resources.Requests == nil {
			declared.Resources.Requests = corev1.ResourceList{}
		}
		declared.Resources.Requests[resourceName] = limit
		isRequested = true
	}
	// To the kubelet a limit of 0 is none.
	if kind == "limits" && limit.IsZero() || kind == "requests" && !isRequested {
		return value{unknown: "not in the manifest: a LimitRange or the node decides"}
	}
	text, err := resource.ExtractContainerResourceValue(ref, declared)
	if err != nil {
		return value{fails: err.Error()}
	}
	return value{text: text}
}
