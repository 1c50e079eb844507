package validation

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/apps"
	api "k8s.io/kubernetes/pkg/apis/core"
	apivalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// ValidateStatefulSetPodSpec validates the pod template of a StatefulSet as its
// pods will be: the controller gives them a volume for each claim, and a
// hostname and subdomain of their own in the place of the template's. The
// metadata of the template is validated elsewhere.
func ValidateStatefulSetPodSpec(spec *apps.StatefulSetSpec, fldPath *field.Path, opts apivalidation.PodValidationOptions) field.ErrorList {
	template := *spec.Template.DeepCopy()
	template.Labels = nil
	setPodDefaults(&template.Spec)
	template.Spec.Hostname, template.Spec.Subdomain = "", ""
	template.Spec.Volumes = withClaims(template.Spec.Volumes, spec.VolumeClaimTemplates)

	templatePath := fldPath.Child("template")
	allErrs := field.ErrorList{}
	for _, err := range apivalidation.ValidatePodTemplateSpec(&template, templatePath, opts) {
		if err.Field != templatePath.Child("annotations").String() {
			allErrs = append(allErrs, err)
		}
	}
	return allErrs
}

// ValidateStatefulSetPodSpecUpdate lets an update stand if the old pod template
// is not valid: it is from an API server that did not validate it, and the
// StatefulSet must still be scaled, fixed in steps and deleted.
func ValidateStatefulSetPodSpecUpdate(spec, oldSpec *apps.StatefulSetSpec, fldPath *field.Path, opts apivalidation.PodValidationOptions) field.ErrorList {
	allErrs := ValidateStatefulSetPodSpec(spec, fldPath, opts)
	if len(allErrs) > 0 && len(ValidateStatefulSetPodSpec(oldSpec, fldPath, opts)) > 0 {
		return nil
	}
	return allErrs
}

// setPodDefaults sets the fields that pods need and get by default. The API has
// set them in a template; a template that was made in Go may lack them.
func setPodDefaults(spec *api.PodSpec) {
	if spec.TerminationGracePeriodSeconds == nil {
		seconds := int64(v1.DefaultTerminationGracePeriodSeconds)
		spec.TerminationGracePeriodSeconds = &seconds
	}
	for _, containers := range [][]api.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if containers[i].TerminationMessagePolicy == "" {
				containers[i].TerminationMessagePolicy = api.TerminationMessageReadFile
			}
		}
	}
}

// withClaims returns the volumes of a pod: one for each claim, and those of the
// template that have no claim's name. The name of a pod's claim is known only
// with the pod's, and any valid one will do.
func withClaims(volumes []api.Volume, claims []api.PersistentVolumeClaim) []api.Volume {
	if len(claims) == 0 {
		return volumes
	}
	claimed := map[string]bool{}
	var all []api.Volume
	for _, claim := range claims {
		// The claims themselves are not validated here, and one name may be there twice.
		if claimed[claim.Name] {
			continue
		}
		claimed[claim.Name] = true
		all = append(all, api.Volume{Name: claim.Name, VolumeSource: api.VolumeSource{
			PersistentVolumeClaim: &api.PersistentVolumeClaimVolumeSource{ClaimName: "claim"},
		}})
	}
	for _, volume := range volumes {
		if !claimed[volume.Name] {
			all = append(all, volume)
		}
	}
	return all
}
