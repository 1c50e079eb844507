// Package podpreset applies to a PodPreset what the feature gates say of the fields of a
// pod template.
package podpreset

import (
	"fmt"
	"sync/atomic"

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

// Injecting says that the admission plugin of this API server injects presets.
var Injecting atomic.Bool

// Warnings say what keeps a valid preset from all pods.
func Warnings(preset *settings.PodPreset) (warnings []string) {
	if !Injecting.Load() {
		warnings = append(warnings, "no pod gets this preset: the admission plugin PodPreset is off, see --enable-admission-plugins of the API server")
	}
	mounted := map[string]bool{}
	for _, mount := range preset.Spec.VolumeMounts {
		mounted[mount.Name] = true
	}
	for i, env := range preset.Spec.Env {
		if env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil && mounted[env.ValueFrom.FileKeyRef.VolumeName] {
			warnings = append(warnings, fmt.Sprintf("spec.env[%d].valueFrom.fileKeyRef.volumeName: no pod gets this preset: a container may not mount the volume whose env files it reads, and the preset has each container mount it", i))
		}
	}
	return warnings
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
