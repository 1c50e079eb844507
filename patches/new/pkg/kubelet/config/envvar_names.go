package config

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/features"
)

// staticPodValidationOptions lets the kubelet's gates decide which names of
// variables a static pod may have, and whether the volume of an env file may be
// mounted by any container: with EnvFiles off no file is read. An API server with
// the gate off refuses the mirror pod of one that has special names; the pod runs
// all the same.
func staticPodValidationOptions() validation.PodValidationOptions {
	return validation.PodValidationOptions{
		AllowRelaxedEnvironmentVariableValidation: utilfeature.DefaultFeatureGate.Enabled(features.RelaxedEnvironmentVariableValidation),
		AllowEnvFileMounts:                        !utilfeature.DefaultFeatureGate.Enabled(features.EnvFiles),
	}
}
