package preset

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	api "k8s.io/kubernetes/pkg/apis/core"
	conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/utils/ptr"

	"podenv.dev/staging/src/k8s.io/component-helpers/settings/inject"
)

// broken says why no pod gets a preset: it breaks the rules of the API, or it was stored
// while other feature gates were on. It is "" for a valid one. The gates are those of the
// Kubernetes release that this module is built with, at their defaults: an API server does
// not tell its own.
func broken(p *PodPreset) string {
	external := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: p.Spec.Volumes, Containers: []corev1.Container{
		{Env: p.Spec.Env, EnvFrom: p.Spec.EnvFrom, VolumeMounts: p.Spec.VolumeMounts},
	}}}
	template := &api.PodTemplateSpec{}
	if err := conversion.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(external, template, nil); err != nil {
		return "The preset cannot be converted"
	}
	spec, opts := field.NewPath("spec"), podutil.GetValidationOptionsFromPodTemplate(template, nil)
	c := &template.Spec.Containers[0]
	volumes, errs := validation.ValidateVolumes(template.Spec.Volumes, nil, spec.Child("volumes"), opts)
	// Some mounts need a privileged container; that is looked at for each pod.
	c.SecurityContext = &api.SecurityContext{Privileged: ptr.To(true)}
	errs = append(errs, validation.ValidateVolumeMounts(c.VolumeMounts, nil, volumes, c, spec.Child("volumeMounts"), opts)...)
	mounted, paths := sets.New[string](), []string{}
	for _, mount := range c.VolumeMounts {
		mounted.Insert(mount.Name)
		paths = append(paths, mount.MountPath)
	}
	for _, i := range inject.PathsAgain(paths) {
		errs = append(errs, field.Duplicate(spec.Child("volumeMounts").Index(i).Child("mountPath"), paths[i]))
	}
	for i, volume := range template.Spec.Volumes {
		if !mounted.Has(volume.Name) {
			errs = append(errs, field.Required(spec.Child("volumes").Index(i).Child("name"), "a mount"))
		}
	}
	errs = append(errs, validation.ValidateEnv(c.Env, spec.Child("env"), opts)...)
	errs = append(errs, validation.ValidateEnvFrom(c.EnvFrom, spec.Child("envFrom"), opts)...)
	if len(c.Env)+len(c.EnvFrom)+len(c.VolumeMounts) == 0 {
		errs = append(errs, field.Required(spec, "something to inject"))
	}
	var fields []string
	for _, err := range errs {
		if !slices.Contains(fields, err.Field) {
			fields = append(fields, err.Field)
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return fmt.Sprintf("The preset is not valid: %s", strings.Join(fields[:min(len(fields), 10)], ", "))
}
