package config

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/features"
)

// staticPodValidationOptions lets the kubelet's gate decide which names of
// variables a static pod may have. An API server with the gate off refuses the
// mirror pod of one that has special names; the pod runs all the same.
func staticPodValidationOptions() validation.PodValidationOptions {
	return validation.PodValidationOptions{
		AllowRelaxedEnvironmentVariableValidation: utilfeature.DefaultFeatureGate.Enabled(features.RelaxedEnvironmentVariableValidation),
	}
}
