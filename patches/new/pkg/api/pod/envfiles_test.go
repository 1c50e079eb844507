package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
)

func TestDropFileKeyRefs(t *testing.T) {
	env := func(source *api.EnvVarSource) []api.EnvVar {
		return []api.EnvVar{{Name: "LITERAL", Value: "value"}, {Name: "FROM_FILE", ValueFrom: source}}
	}
	using := &api.EnvVarSource{FileKeyRef: &api.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "KEY"}}
	dropped := &api.EnvVarSource{}

	kinds := map[string]func([]api.EnvVar) *api.PodSpec{
		"container": func(env []api.EnvVar) *api.PodSpec {
			return &api.PodSpec{Containers: []api.Container{{Env: env}}}
		},
		"two containers": func(env []api.EnvVar) *api.PodSpec {
			return &api.PodSpec{InitContainers: []api.Container{{Env: env}}, Containers: []api.Container{{Env: env}, {Env: env}}}
		},
		"init container": func(env []api.EnvVar) *api.PodSpec {
			return &api.PodSpec{InitContainers: []api.Container{{Env: env}}}
		},
		"ephemeral container": func(env []api.EnvVar) *api.PodSpec {
			return &api.PodSpec{EphemeralContainers: []api.EphemeralContainer{
				{EphemeralContainerCommon: api.EphemeralContainerCommon{Env: env}},
			}}
		},
	}
	testCases := []struct {
		name    string
		enabled bool
		old     *api.EnvVarSource // nil: the object is created
		want    *api.EnvVarSource
	}{
		{name: "gate off, create: dropped", want: dropped},
		{name: "gate off, update of an object that does not use it: dropped", old: dropped, want: dropped},
		{name: "gate off, update of an object that uses it: kept", old: using, want: using},
		{name: "gate on, create: kept", enabled: true, want: using},
		{name: "gate on, update of an object that does not use it: kept", enabled: true, old: dropped, want: using},
		{name: "gate on, update of an object that uses it: kept", enabled: true, old: using, want: using},
	}
	for kind, specWith := range kinds {
		for _, tc := range testCases {
			t.Run(kind+"/"+tc.name, func(t *testing.T) {
				featurestest.SetGate(t, features.EnvFiles, tc.enabled)

				got := (&api.PodTemplateSpec{Spec: *specWith(env(using))}).DeepCopy()
				var old *api.PodTemplateSpec
				if tc.old != nil {
					old = (&api.PodTemplateSpec{Spec: *specWith(env(tc.old))}).DeepCopy()
				}
				oldBefore := old.DeepCopy()
				DropDisabledTemplateFields(got, old)

				want := &api.PodTemplateSpec{Spec: *specWith(env(tc.want))}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("unexpected template (-want, +got):\n%s", diff)
				}
				if diff := cmp.Diff(oldBefore, old); diff != "" {
					t.Errorf("the old template changed (-before, +after):\n%s", diff)
				}
			})
		}
	}
}
