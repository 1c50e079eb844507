package podpreset

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podpresetutil "k8s.io/kubernetes/pkg/api/podpreset"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/settings"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
)

// presetWith has every field, and a variable FROM_FILE with that source.
func presetWith(source *api.EnvVarSource) *settings.PodPreset {
	preset := &settings.PodPreset{
		ObjectMeta: metav1.ObjectMeta{Name: "allow-database", Namespace: "default", ResourceVersion: "1"},
		Spec: settings.PodPresetSpec{
			Selector:     metav1.LabelSelector{MatchLabels: map[string]string{"role": "frontend"}},
			Env:          []api.EnvVar{{Name: "LITERAL", Value: "value"}, {Name: "FROM_FILE", ValueFrom: source}},
			EnvFrom:      []api.EnvFromSource{{ConfigMapRef: &api.ConfigMapEnvSource{LocalObjectReference: api.LocalObjectReference{Name: "settings"}}}},
			Volumes:      []api.Volume{{Name: "cache", VolumeSource: api.VolumeSource{EmptyDir: &api.EmptyDirVolumeSource{}}}},
			VolumeMounts: []api.VolumeMount{{Name: "cache", MountPath: "/cache"}},
		},
	}
	return preset.DeepCopy()
}

func fromVolume(name string) *api.EnvVarSource {
	return &api.EnvVarSource{FileKeyRef: &api.FileKeySelector{VolumeName: name, Path: "config.env", Key: "KEY"}}
}

func TestFileKeyRefsOfAPresetFollowTheGate(t *testing.T) {
	using, dropped := fromVolume("config"), &api.EnvVarSource{}
	for _, tc := range []struct {
		name    string
		enabled bool
		old     *settings.PodPreset // nil: the preset is created
		want    *api.EnvVarSource
	}{
		{name: "gate off, create: dropped", want: dropped},
		{name: "gate off, update of one that does not use it: dropped", old: presetWith(dropped), want: dropped},
		{name: "gate off, update of one that uses it: kept", old: presetWith(using), want: using},
		{name: "gate on, create: kept", enabled: true, want: using},
		{name: "gate on, update of one that does not use it: kept", enabled: true, old: presetWith(dropped), want: using},
	} {
		t.Run(tc.name, func(t *testing.T) {
			featurestest.SetGate(t, features.EnvFiles, tc.enabled)
			got := presetWith(using)
			if tc.old == nil {
				Strategy.PrepareForCreate(context.Background(), got)
			} else {
				Strategy.PrepareForUpdate(context.Background(), got, tc.old)
			}
			if diff := cmp.Diff(presetWith(tc.want), got); diff != "" {
				t.Errorf("unexpected preset (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestPresetsAreValidated(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, true)
	ctx, valid := context.Background(), presetWith(fromVolume("config"))
	if errs := Strategy.Validate(ctx, valid); len(errs) > 0 {
		t.Errorf("a valid one: %v", errs)
	}
	bad := presetWith(&api.EnvVarSource{})
	if errs := Strategy.Validate(ctx, bad); len(errs) != 1 || errs[0].Field != "spec.env[1].valueFrom" || !strings.Contains(errs[0].Detail, "fileKeyRef") {
		t.Errorf("a variable without a source: %v", errs)
	}
	changed := valid.DeepCopy()
	changed.Labels = map[string]string{"new": "label"}
	if errs := Strategy.ValidateUpdate(ctx, changed, valid); len(errs) > 0 {
		t.Errorf("a label is added: %v", errs)
	}
	changed.Spec.Env[0].Value = "other"
	if errs := Strategy.ValidateUpdate(ctx, changed, valid); len(errs) != 1 {
		t.Errorf("the spec is changed: %v", errs)
	}
	if !Strategy.NamespaceScoped() {
		t.Error("presets have no namespace")
	}
}

func TestCreatorsAreWarnedOfPresetsThatNoPodGets(t *testing.T) {
	before := podpresetutil.Injecting.Load()
	defer podpresetutil.Injecting.Store(before)
	const off, mounted = "the admission plugin PodPreset is off", "spec.env[1].valueFrom.fileKeyRef.volumeName: "
	for _, tc := range []struct {
		name      string
		injecting bool
		source    *api.EnvVarSource
		want      []string // in the warnings
	}{
		{name: "none", injecting: true, source: fromVolume("config")},
		{name: "another source", injecting: true, source: &api.EnvVarSource{FieldRef: &api.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{name: "the plugin is off", source: fromVolume("config"), want: []string{off}},
		{name: "it reads a volume that it mounts", injecting: true, source: fromVolume("cache"), want: []string{mounted}},
		{name: "both", source: fromVolume("cache"), want: []string{off, mounted}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			podpresetutil.Injecting.Store(tc.injecting)
			got := Strategy.WarningsOnCreate(context.Background(), presetWith(tc.source))
			if len(got) != len(tc.want) {
				t.Fatalf("got %q", got)
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %q, want one with %q", got[i], want)
				}
			}
		})
	}
}
