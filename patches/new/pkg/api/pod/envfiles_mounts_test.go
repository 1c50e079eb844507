package pod

import (
	"testing"

	api "k8s.io/kubernetes/pkg/apis/core"
)

func TestAllowEnvFileMounts(t *testing.T) {
	env := []api.EnvVar{{Name: "FROM_FILE", ValueFrom: &api.EnvVarSource{
		FileKeyRef: &api.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "KEY"},
	}}}
	mounts := []api.VolumeMount{{Name: "config", MountPath: "/config"}}

	obeys := &api.PodSpec{InitContainers: []api.Container{{VolumeMounts: mounts}}, Containers: []api.Container{{Env: env}}}
	mountsOnly := &api.PodSpec{Containers: []api.Container{{VolumeMounts: mounts}}}
	breaks := &api.PodSpec{Containers: []api.Container{{Env: env}, {VolumeMounts: mounts}}}
	breaksInEphemeral := &api.PodSpec{
		Containers: []api.Container{{Env: env}},
		EphemeralContainers: []api.EphemeralContainer{
			{EphemeralContainerCommon: api.EphemeralContainerCommon{VolumeMounts: mounts}},
		},
	}

	testCases := []struct {
		name string
		old  *api.PodSpec // nil: the object is created
		new  *api.PodSpec
		want bool
	}{
		{name: "create of an object that breaks the rule", new: breaks, want: false},
		{name: "update from an object without env files", old: &api.PodSpec{}, new: breaks, want: false},
		{name: "update from an object that mounts a volume none consumes", old: mountsOnly, new: breaks, want: false},
		{name: "update from an object that obeys the rule", old: obeys, new: breaks, want: false},
		{name: "a new ephemeral container mounts what another container consumes", old: obeys, new: breaksInEphemeral, want: false},
		{name: "update from an object that breaks the rule", old: breaks, new: breaks, want: true},
		{name: "update from an object that breaks the rule to one that obeys it", old: breaks, new: obeys, want: true},
		{name: "update from a pod that breaks the rule in an ephemeral container", old: breaksInEphemeral, new: breaksInEphemeral, want: true},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			if got := GetValidationOptionsFromPodSpecAndMeta(tc.new, tc.old, nil, nil).AllowEnvFileMounts; got != tc.want {
				t.Errorf("from spec: want %v, got %v", tc.want, got)
			}
			var old *api.PodTemplateSpec
			if tc.old != nil {
				old = &api.PodTemplateSpec{Spec: *tc.old}
			}
			if got := GetValidationOptionsFromPodTemplate(&api.PodTemplateSpec{Spec: *tc.new}, old).AllowEnvFileMounts; got != tc.want {
				t.Errorf("from template: want %v, got %v", tc.want, got)
			}
		})
	}
}
