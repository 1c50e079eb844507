// Package validation validates the types of settings.k8s.io.
package validation

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/settings/inject"
	api "k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/settings"
)

// ValidatePodPresetName checks the name of a PodPreset, or what one starts with. The name
// has to fit into the key of an annotation.
func ValidatePodPresetName(name string, prefix bool) []string {
	msgs := apimachineryvalidation.NameIsDNSSubdomain(name, prefix)
	if len(name) > inject.MaxNameLength {
		msgs = append(msgs, validation.MaxLenError(inject.MaxNameLength))
	}
	return msgs
}

// ValidatePodPreset checks a new PodPreset.
func ValidatePodPreset(preset *settings.PodPreset, opts corevalidation.PodValidationOptions) field.ErrorList {
	allErrs := corevalidation.ValidateObjectMeta(&preset.ObjectMeta, true, ValidatePodPresetName, field.NewPath("metadata"))
	return append(allErrs, validateSpec(&preset.Spec, field.NewPath("spec"), opts)...)
}

// ValidatePodPresetUpdate checks a changed PodPreset: its spec is the old one.
func ValidatePodPresetUpdate(preset, old *settings.PodPreset) field.ErrorList {
	allErrs := corevalidation.ValidateObjectMetaUpdate(&preset.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if !apiequality.Semantic.DeepEqual(preset.Spec, old.Spec) {
		// Without the value: it has those of variables.
		allErrs = append(allErrs, field.Forbidden(field.NewPath("spec"), "is immutable: delete the PodPreset and create it anew"))
	}
	return allErrs
}

func validateSpec(spec *settings.PodPresetSpec, fldPath *field.Path, opts corevalidation.PodValidationOptions) field.ErrorList {
	var allErrs field.ErrorList
	selectorPath := fldPath.Child("selector")
	if len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		allErrs = append(allErrs, field.Required(selectorPath, "must have at least one label or expression: an empty selector would match every pod"))
	}
	allErrs = append(allErrs, unversionedvalidation.ValidateLabelSelector(&spec.Selector, unversionedvalidation.LabelSelectorValidationOptions{}, selectorPath)...)

	if len(spec.Env)+len(spec.EnvFrom)+len(spec.Volumes)+len(spec.VolumeMounts) == 0 {
		allErrs = append(allErrs, field.Required(fldPath, "must have at least one of `env`, `envFrom`, or `volumes` with `volumeMounts`"))
	}
	allErrs = append(allErrs, corevalidation.ValidateEnv(spec.Env, fldPath.Child("env"), opts)...)
	allErrs = append(allErrs, corevalidation.ValidateEnvFrom(spec.EnvFrom, fldPath.Child("envFrom"), opts)...)
	allErrs = append(allErrs, validateVolumes(spec, fldPath, opts)...)
	return allErrs
}

// validateVolumes checks the volumes and their mounts, and that none is without the other.
func validateVolumes(spec *settings.PodPresetSpec, fldPath *field.Path, opts corevalidation.PodValidationOptions) field.ErrorList {
	volumesPath := fldPath.Child("volumes")
	volumes, allErrs := corevalidation.ValidateVolumes(spec.Volumes, nil, volumesPath, opts)
	// Some mounts need a privileged container. Whether a pod has one is not known here.
	privileged := true
	container := &api.Container{SecurityContext: &api.SecurityContext{Privileged: &privileged}}
	allErrs = append(allErrs, validateMounts(spec.VolumeMounts, volumes, container, fldPath.Child("volumeMounts"), opts)...)

	mounted, paths := sets.New[string](), []string{}
	for _, mount := range spec.VolumeMounts {
		mounted.Insert(mount.Name)
		paths = append(paths, mount.MountPath)
	}
	// Core compares paths as text. The kubelet mounts /cache and /cache/ at one path.
	for _, i := range inject.PathsAgain(paths) {
		allErrs = append(allErrs, field.Duplicate(fldPath.Child("volumeMounts").Index(i).Child("mountPath"), paths[i]))
	}
	for i := range spec.Volumes {
		if name := spec.Volumes[i].Name; name != "" && !mounted.Has(name) {
			allErrs = append(allErrs, field.Invalid(volumesPath.Index(i).Child("name"), name,
				fmt.Sprintf("must have a mount in %s", fldPath.Child("volumeMounts"))))
		}
	}
	return allErrs
}
