package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	api "k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// validateMounts calls the validation of core, which takes no options up to v1.30.
func validateMounts(mounts []api.VolumeMount, volumes map[string]api.VolumeSource, container *api.Container, fldPath *field.Path, _ corevalidation.PodValidationOptions) field.ErrorList {
	return corevalidation.ValidateVolumeMounts(mounts, nil, volumes, container, fldPath)
}
