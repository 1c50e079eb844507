// +k8s:deepcopy-gen=package
// +k8s:protobuf-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.k8s.api.settings.v1alpha1

// +groupName=settings.k8s.io

package v1alpha1
