package pod

import (
	"k8s.io/apimachinery/pkg/util/validation"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

// allowRelaxedEnvVarNames decides which rule the names of environment variables
// and the prefixes of envFrom follow. While the feature is disabled, an object
// that got relaxed names before can still be updated.
func allowRelaxedEnvVarNames(oldPodSpec *api.PodSpec) bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.RelaxedEnvironmentVariableValidation) ||
		hasRelaxedEnvVarNames(oldPodSpec)
}

// hasRelaxedEnvVarNames tells whether strict validation would refuse a name or
// a prefix in podSpec.
func hasRelaxedEnvVarNames(podSpec *api.PodSpec) bool {
	if podSpec == nil {
		return false
	}
	return !VisitContainers(podSpec, AllContainers, func(c *api.Container, _ ContainerType) bool {
		for _, env := range c.Env {
			if len(validation.IsEnvVarName(env.Name)) > 0 {
				return false
			}
		}
		for _, from := range c.EnvFrom {
			if from.Prefix != "" && len(validation.IsEnvVarName(from.Prefix)) > 0 {
				return false
			}
		}
		return true
	})
}
