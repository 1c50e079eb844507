// +k8s:deepcopy-gen=package

// +groupName=settings.k8s.io

// Package settings is the internal version of the API group settings.k8s.io.
package settings
