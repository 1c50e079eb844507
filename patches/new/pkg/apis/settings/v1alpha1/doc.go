// +k8s:conversion-gen=k8s.io/kubernetes/pkg/apis/settings
// +k8s:conversion-gen-external-types=k8s.io/api/settings/v1alpha1
// +k8s:defaulter-gen=TypeMeta
// +k8s:defaulter-gen-input=k8s.io/api/settings/v1alpha1

// +groupName=settings.k8s.io

// Package v1alpha1 converts and defaults the types of settings.k8s.io/v1alpha1.
package v1alpha1
