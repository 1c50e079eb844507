package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/apps"
	apivalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// ValidateStatefulSetFileKeyRefs validates every fileKeyRef of the pod template of
// a StatefulSet as those of its pods are.
//
// KEP-3721, "Container Behavior".
func ValidateStatefulSetFileKeyRefs(spec *apps.StatefulSetSpec, fldPath *field.Path, opts apivalidation.PodValidationOptions) field.ErrorList {
	podSpec := podSpecOf(spec)
	return apivalidation.ValidateFileKeyRefs(&podSpec, fldPath.Child("template", "spec"), opts)
}

// ValidateStatefulSetFileKeyRefsUpdate lets an update stand if the old template is
// not valid: it is from an API server that did not validate it, and the StatefulSet
// must still be scaled, fixed in steps and deleted.
func ValidateStatefulSetFileKeyRefsUpdate(spec, oldSpec *apps.StatefulSetSpec, fldPath *field.Path, opts apivalidation.PodValidationOptions) field.ErrorList {
	allErrs := ValidateStatefulSetFileKeyRefs(spec, fldPath, opts)
	if len(allErrs) > 0 && len(ValidateStatefulSetFileKeyRefs(oldSpec, fldPath, opts)) > 0 {
		return nil
	}
	return allErrs
}
