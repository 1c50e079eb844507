package v1alpha1

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodPreset adds environment variables, volumes and volume mounts to the pods
// of its namespace that a selector matches, when they are created.
type PodPreset struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec says which pods are changed, and what is added to them. It is immutable.
	// +required
	Spec PodPresetSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// PodPresetSpec says which pods are changed, and what is added to them.
type PodPresetSpec struct {
	// selector matches the labels of the pods that are changed. It must have at
	// least one label or expression.
	// +required
	Selector metav1.LabelSelector `json:"selector" protobuf:"bytes,1,opt,name=selector"`

	// env is added to the variables of each container and init container.
	// +optional
	// +listType=atomic
	Env []v1.EnvVar `json:"env,omitempty" protobuf:"bytes,2,rep,name=env"`

	// envFrom is added to the sources of variables of each container and init container.
	// +optional
	// +listType=atomic
	EnvFrom []v1.EnvFromSource `json:"envFrom,omitempty" protobuf:"bytes,3,rep,name=envFrom"`

	// volumes is added to the volumes of the pod. Each volume must have a mount.
	// +optional
	// +listType=atomic
	Volumes []v1.Volume `json:"volumes,omitempty" protobuf:"bytes,4,rep,name=volumes"`

	// volumeMounts is added to the volume mounts of each container and init
	// container. Each mount must name one of the volumes of this preset.
	// +optional
	// +listType=atomic
	VolumeMounts []v1.VolumeMount `json:"volumeMounts,omitempty" protobuf:"bytes,5,rep,name=volumeMounts"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodPresetList is a list of PodPresets.
type PodPresetList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items is the list of PodPresets.
	Items []PodPreset `json:"items" protobuf:"bytes,2,rep,name=items"`
}
