package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	api "k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// validateMounts calls the validation of core, which takes options from v1.31 on.
func validateMounts(mounts []api.VolumeMount, volumes map[string]api.VolumeSource, container *api.Container, fldPath *field.Path, opts corevalidation.PodValidationOptions) field.ErrorList {
	return corevalidation.ValidateVolumeMounts(mounts, nil, volumes, container, fldPath, opts)
}
