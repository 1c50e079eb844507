// Package podpreset applies to a PodPreset what the feature gates say of the fields of a
// pod template.
package podpreset

import (
	podutil "k8s.io/kubernetes/pkg/api/pod"
	api "k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/settings"
)

// DropDisabledFields takes the fields out of preset that are behind gates that are off,
// unless old uses them. old may be nil.
func DropDisabledFields(preset, old *settings.PodPreset) {
	template := templateOf(preset)
	podutil.DropDisabledTemplateFields(template, templateOf(old))
	container := template.Spec.Containers[0]
	preset.Spec.Env = container.Env
	preset.Spec.EnvFrom = container.EnvFrom
	preset.Spec.VolumeMounts = container.VolumeMounts
	preset.Spec.Volumes = template.Spec.Volumes
}

// ValidationOptions are those that a pod template with the content of preset has. old, the
// object that is updated, may be nil.
func ValidationOptions(preset, old *settings.PodPreset) corevalidation.PodValidationOptions {
	return podutil.GetValidationOptionsFromPodTemplate(templateOf(preset), templateOf(old))
}

// templateOf makes a template of one container that has all of preset.
func templateOf(preset *settings.PodPreset) *api.PodTemplateSpec {
	if preset == nil {
		return nil
	}
	return &api.PodTemplateSpec{Spec: api.PodSpec{
		Containers: []api.Container{{
			Env:          preset.Spec.Env,
			EnvFrom:      preset.Spec.EnvFrom,
			VolumeMounts: preset.Spec.VolumeMounts,
		}},
		Volumes: preset.Spec.Volumes,
	}}
}
