package pod

import (
	"strings"
	"testing"

	api "k8s.io/kubernetes/pkg/apis/core"
)

func TestAllowEnvFilePathsOutOfBounds(t *testing.T) {
	from := func(paths ...string) *api.PodSpec {
		spec := &api.PodSpec{Containers: []api.Container{{}}}
		for _, path := range paths {
			spec.Containers[0].Env = append(spec.Containers[0].Env, api.EnvVar{ValueFrom: &api.EnvVarSource{
				FileKeyRef: &api.FileKeySelector{VolumeName: "config", Path: path, Key: "KEY"},
			}})
		}
		return spec
	}
	long := strings.Repeat("x", 5000)
	testCases := []struct {
		name string
		old  *api.PodSpec // nil: the object is created
		want bool
	}{
		{name: "create"},
		{name: "update of an object without env files", old: &api.PodSpec{}},
		{name: "update of an object with paths in bounds", old: from("config.env", "dir/config.env")},
		{name: "update of an object with a path in bounds and one that is not", old: from("config.env", long), want: true},
		{name: "update of an object with a slash at the end of a path", old: from("config.env/"), want: true},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			if got := GetValidationOptionsFromPodSpecAndMeta(from(long), tc.old, nil, nil).AllowEnvFilePathsOutOfBounds; got != tc.want {
				t.Errorf("want %v, got %v", tc.want, got)
			}
		})
	}
}
