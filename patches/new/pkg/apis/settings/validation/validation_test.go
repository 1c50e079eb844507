package validation

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/settings"
)

func valid() *settings.PodPreset {
	return &settings.PodPreset{
		ObjectMeta: metav1.ObjectMeta{Name: "allow-database", Namespace: "default", ResourceVersion: "1"},
		Spec: settings.PodPresetSpec{
			Selector:     metav1.LabelSelector{MatchLabels: map[string]string{"role": "frontend"}},
			Env:          []api.EnvVar{{Name: "DB_PORT", Value: "6379"}},
			EnvFrom:      []api.EnvFromSource{{ConfigMapRef: &api.ConfigMapEnvSource{LocalObjectReference: api.LocalObjectReference{Name: "settings"}}}},
			Volumes:      []api.Volume{{Name: "cache", VolumeSource: api.VolumeSource{EmptyDir: &api.EmptyDirVolumeSource{}}}},
			VolumeMounts: []api.VolumeMount{{Name: "cache", MountPath: "/cache"}},
		},
	}
}

func TestValidatePodPreset(t *testing.T) {
	bidirectional := api.MountPropagationBidirectional
	tests := []struct {
		name   string
		change func(*settings.PodPreset)
		fields []string
	}{
		{"every field", func(*settings.PodPreset) {}, nil},
		{"env only", func(p *settings.PodPreset) { p.Spec.EnvFrom, p.Spec.Volumes, p.Spec.VolumeMounts = nil, nil, nil }, nil},
		{"envFrom only", func(p *settings.PodPreset) { p.Spec.Env, p.Spec.Volumes, p.Spec.VolumeMounts = nil, nil, nil }, nil},
		{"env and envFrom only", func(p *settings.PodPreset) { p.Spec.Volumes, p.Spec.VolumeMounts = nil, nil }, nil},
		{"volumes with mounts only", func(p *settings.PodPreset) { p.Spec.Env, p.Spec.EnvFrom = nil, nil }, nil},
		{"an expression only", func(p *settings.PodPreset) {
			p.Spec.Selector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "role", Operator: metav1.LabelSelectorOpExists}}}
		}, nil},
		{"a label and an expression", func(p *settings.PodPreset) {
			p.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "role", Operator: metav1.LabelSelectorOpExists}}
		}, nil},
		{"a mount for privileged containers", func(p *settings.PodPreset) { p.Spec.VolumeMounts[0].MountPropagation = &bidirectional }, nil},
		{"a name of 53 bytes", func(p *settings.PodPreset) { p.Name = strings.Repeat("a", 53) }, nil},
		{"a name of 54 bytes", func(p *settings.PodPreset) { p.Name = strings.Repeat("a", 54) }, []string{"metadata.name"}},
		{"an empty selector", func(p *settings.PodPreset) { p.Spec.Selector = metav1.LabelSelector{} }, []string{"spec.selector"}},
		{"empty lists in the selector", func(p *settings.PodPreset) {
			p.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{}, MatchExpressions: []metav1.LabelSelectorRequirement{}}
		}, []string{"spec.selector"}},
		{"a bad selector", func(p *settings.PodPreset) { p.Spec.Selector.MatchLabels["a b"] = "" }, []string{"spec.selector.matchLabels"}},
		{"nothing to inject", func(p *settings.PodPreset) { p.Spec = settings.PodPresetSpec{Selector: p.Spec.Selector} }, []string{"spec"}},
		{"empty lists", func(p *settings.PodPreset) {
			p.Spec = settings.PodPresetSpec{Selector: p.Spec.Selector, Env: []api.EnvVar{}, VolumeMounts: []api.VolumeMount{}}
		}, []string{"spec"}},
		{"a volume without a mount", func(p *settings.PodPreset) { p.Spec.VolumeMounts = nil }, []string{"spec.volumes[0].name"}},
		{"a volume without a name", func(p *settings.PodPreset) {
			p.Spec.Volumes = append(p.Spec.Volumes, api.Volume{VolumeSource: p.Spec.Volumes[0].VolumeSource})
		}, []string{"spec.volumes[1].name"}},
		{"a mount of nothing", func(p *settings.PodPreset) { p.Spec.Volumes = nil }, []string{"spec.volumeMounts[0].name"}},
		{"a bad name of a variable", func(p *settings.PodPreset) { p.Spec.Env[0].Name = "A=B" }, []string{"spec.env[0].name"}},
		{"a variable with a value and a source", func(p *settings.PodPreset) {
			p.Spec.Env[0].ValueFrom = &api.EnvVarSource{FieldRef: &api.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}
		}, []string{"spec.env[0].valueFrom"}},
		{"a source without a name", func(p *settings.PodPreset) { p.Spec.EnvFrom[0].ConfigMapRef.Name = "" }, []string{"spec.envFrom[0].configMapRef.name"}},
		{"two volumes of one name", func(p *settings.PodPreset) { p.Spec.Volumes = append(p.Spec.Volumes, p.Spec.Volumes[0]) }, []string{"spec.volumes[1].name"}},
		{"two mounts of one path", func(p *settings.PodPreset) { p.Spec.VolumeMounts = append(p.Spec.VolumeMounts, p.Spec.VolumeMounts[0]) }, []string{"spec.volumeMounts[1].mountPath"}},
		{"two mounts of one path, written otherwise", func(p *settings.PodPreset) {
			p.Spec.VolumeMounts = append(p.Spec.VolumeMounts, api.VolumeMount{Name: "cache", MountPath: "/cache/"})
		}, []string{"spec.volumeMounts[1].mountPath"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			preset := valid()
			tt.change(preset)
			var fields []string
			for _, err := range ValidatePodPreset(preset, corevalidation.PodValidationOptions{}) {
				fields = append(fields, err.Field)
			}
			if !slices.Equal(fields, tt.fields) {
				t.Errorf("errors at %q, want %q", fields, tt.fields)
			}
		})
	}
}

func TestValidatePodPresetUpdate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*settings.PodPreset)
		fields []string
	}{
		{"metadata", func(p *settings.PodPreset) { p.Labels = map[string]string{"a": "b"} }, nil},
		{"a value", func(p *settings.PodPreset) { p.Spec.Env[0].Value = "1" }, []string{"spec"}},
		{"the selector", func(p *settings.PodPreset) { p.Spec.Selector.MatchLabels["a"] = "b" }, []string{"spec"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			preset := valid()
			tt.change(preset)
			var fields []string
			for _, err := range ValidatePodPresetUpdate(preset, valid()) {
				fields = append(fields, err.Field)
			}
			if !slices.Equal(fields, tt.fields) {
				t.Errorf("errors at %q, want %q", fields, tt.fields)
			}
		})
	}
}
