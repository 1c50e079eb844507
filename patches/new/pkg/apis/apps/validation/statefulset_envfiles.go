package validation

import (
	"slices"
	"strings"

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

// ValidateStatefulSetFileKeyRefsUpdate lets stand what is not valid in the old template
// too: it is from an API server that did not validate it, and the StatefulSet must still
// be scaled, fixed in steps and deleted. As with the paths and keys that are stored, what
// counts is what is wrong, not where: containers and variables may move and be repeated.
func ValidateStatefulSetFileKeyRefsUpdate(spec, oldSpec *apps.StatefulSetSpec, fldPath *field.Path, opts apivalidation.PodValidationOptions) field.ErrorList {
	allErrs := ValidateStatefulSetFileKeyRefs(spec, fldPath, opts)
	if len(allErrs) == 0 {
		return allErrs
	}
	old := map[string]bool{}
	for _, err := range ValidateStatefulSetFileKeyRefs(oldSpec, fldPath, opts) {
		old[withoutPlace(err)] = true
	}
	return slices.DeleteFunc(allErrs, func(err *field.Error) bool { return old[withoutPlace(err)] })
}

// withoutPlace returns the field of an error from its last index on, and its type, value
// and detail.
func withoutPlace(err *field.Error) string {
	return err.Field[strings.LastIndex(err.Field, "]")+1:] + ": " + err.ErrorBody()
}
