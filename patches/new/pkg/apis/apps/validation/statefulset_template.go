package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/apps"
	api "k8s.io/kubernetes/pkg/apis/core"
	podshelper "k8s.io/kubernetes/pkg/apis/core/pods"
	apivalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// WarningsForStatefulSetPodSpec names the variables and mounts in the pod template
// of a StatefulSet that no pod can have as it stands. They are no errors: admission
// may still complete its pods, with a volume for example.
func WarningsForStatefulSetPodSpec(spec *apps.StatefulSetSpec, fldPath *field.Path, opts apivalidation.PodValidationOptions) []string {
	podSpec := podSpecOf(spec)
	volumes := map[string]bool{}
	for _, volume := range podSpec.Volumes {
		volumes[volume.Name] = true
	}
	var errs field.ErrorList
	podshelper.VisitContainersWithPath(&podSpec, fldPath.Child("template", "spec"), func(c *api.Container, containerPath *field.Path) bool {
		errs = append(errs, apivalidation.ValidateEnv(c.Env, containerPath.Child("env"), opts)...)
		errs = append(errs, apivalidation.ValidateEnvFrom(c.EnvFrom, containerPath.Child("envFrom"), opts)...)
		for i, mount := range c.VolumeMounts {
			if !volumes[mount.Name] {
				errs = append(errs, field.NotFound(containerPath.Child("volumeMounts").Index(i).Child("name"), mount.Name))
			}
		}
		return true
	})
	var warnings []string
	for _, err := range errs {
		warnings = append(warnings, fmt.Sprintf("%s: no pod can have this as it stands: %s", err.Field, err.ErrorBody()))
	}
	return warnings
}

// podSpecOf returns the pod template of a StatefulSet with a volume for each claim, as
// its pods will be. Of two volumes with one name the last counts: the controller puts
// a claim's in the place of the template's.
func podSpecOf(spec *apps.StatefulSetSpec) api.PodSpec {
	podSpec := spec.Template.Spec
	podSpec.Volumes = slices.Clone(podSpec.Volumes)
	for _, claim := range spec.VolumeClaimTemplates {
		podSpec.Volumes = append(podSpec.Volumes, api.Volume{Name: claim.Name, VolumeSource: api.VolumeSource{
			PersistentVolumeClaim: &api.PersistentVolumeClaimVolumeSource{},
		}})
	}
	return podSpec
}
