package settings

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubernetes/pkg/apis/core"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodPreset adds environment variables, volumes and volume mounts to the pods
// of its namespace that a selector matches, when they are created.
type PodPreset struct {
	metav1.TypeMeta
	// +optional
	metav1.ObjectMeta

	// Spec says which pods are changed, and what is added to them. It is immutable.
	// +optional
	Spec PodPresetSpec
}

// PodPresetSpec says which pods are changed, and what is added to them.
type PodPresetSpec struct {
	// Selector matches the labels of the pods that are changed. It must have at
	// least one label or expression.
	Selector metav1.LabelSelector

	// Env is added to the variables of each container and init container.
	// +optional
	Env []api.EnvVar

	// EnvFrom is added to the sources of variables of each container and init container.
	// +optional
	EnvFrom []api.EnvFromSource

	// Volumes is added to the volumes of the pod. Each volume must have a mount.
	// +optional
	Volumes []api.Volume

	// VolumeMounts is added to the volume mounts of each container and init
	// container. Each mount must name one of the volumes of this preset.
	// +optional
	VolumeMounts []api.VolumeMount
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodPresetList is a list of PodPresets.
type PodPresetList struct {
	metav1.TypeMeta
	// +optional
	metav1.ListMeta

	Items []PodPreset
}
