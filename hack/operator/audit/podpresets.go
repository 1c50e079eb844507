package audit

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

var podPresets = schema.GroupVersionResource{Group: "settings.k8s.io", Version: "v1alpha1", Resource: "podpresets"}

// presetsOf reads PodPresets as pods with one container, which has what a preset adds to each. A
// server without the API may answer 403 to a user who may not list them, so it first asks
// discovery, which every user may read.
func presetsOf(presets dynamic.Interface) resource {
	return resource{PodPreset, podPresets.GroupResource().String(), func(client kubernetes.Interface, namespace string) lister {
		return func(ctx context.Context, options metav1.ListOptions) ([]runtime.Object, string, error) {
			if _, err := client.Discovery().ServerResourcesForGroupVersion(podPresets.GroupVersion().String()); err != nil {
				return nil, "", err
			}
			list, err := presets.Resource(podPresets).Namespace(namespace).List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			objects := make([]runtime.Object, len(list.Items))
			for i := range list.Items {
				preset := &list.Items[i]
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: preset.GetNamespace(), Name: preset.GetName(), UID: preset.GetUID()}}
				pod.Spec.Containers = make([]v1.Container, 1)
				spec, _, err := unstructured.NestedMap(preset.Object, "spec")
				if err == nil {
					err = runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &pod.Spec.Containers[0])
				}
				if err != nil {
					return nil, "", fmt.Errorf("PodPreset %s/%s: %w", pod.Namespace, pod.Name, err)
				}
				objects[i] = pod
			}
			return objects, list.GetContinue(), nil
		}
	}}
}
