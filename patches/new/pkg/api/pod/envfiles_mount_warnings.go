package pod

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	api "k8s.io/kubernetes/pkg/apis/core"
	apivalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// WarningsForEnvFileMounts warns of each mount through which a container can write an
// env file while or after the kubelet reads it for another one, or for itself.
//
// KEP-3721, "Container Behavior". It is no error: stored pods have such mounts.
func WarningsForEnvFileMounts(podSpec *api.PodSpec, specPath *field.Path) []string {
	var warnings []string
	for _, err := range apivalidation.ValidateEnvFileMounts(podSpec, specPath) {
		warnings = append(warnings, err.Field+": "+err.Detail)
	}
	return warnings
}
