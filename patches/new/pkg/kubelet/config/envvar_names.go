package config

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/features"
)

// staticPodValidationOptions lets the kubelet's gate decide which names of variables a
// static pod may have. An API server with the gate off refuses the mirror pod of one
// that has special names; the pod runs all the same.
func staticPodValidationOptions() validation.PodValidationOptions {
	return validation.PodValidationOptions{
		AllowRelaxedEnvironmentVariableValidation: utilfeature.DefaultFeatureGate.Enabled(features.RelaxedEnvironmentVariableValidation),
	}
}

// dropFileKeyRefs removes the fileKeyRefs of a static pod while the gate EnvFiles is off,
// as an API server does with its gate off. So the pod runs, or is refused, as with a
// kubelet that does not know the field.
func dropFileKeyRefs(pod *api.Pod) {
	podutil.DropFileKeyRefs(&pod.Spec, nil)
}
