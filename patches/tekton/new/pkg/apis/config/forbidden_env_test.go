package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tektoncd/pipeline/pkg/apis/config"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	corev1 "k8s.io/api/core/v1"
)

func TestForbiddenEnv(t *testing.T) {
	defaults := &config.Defaults{
		DefaultForbiddenEnv: []string{"HTTP_PROXY", "NO_PROXY"},
		DefaultPodTemplate:  &pod.Template{Env: []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "proxy:8080"}}},
	}
	for _, tc := range []struct {
		name string
		env  []corev1.EnvVar
		want []string
	}{
		{"no variable", nil, nil},
		{"a variable that is not forbidden", []corev1.EnvVar{{Name: "MSG", Value: "x"}}, nil},
		{"the default as it is", []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "proxy:8080"}}, nil},
		{"the default with another value", []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "8080"}}, []string{"HTTP_PROXY"}},
		{"the default with a source", []corev1.EnvVar{{Name: "HTTP_PROXY", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
		}}}, []string{"HTTP_PROXY"}},
		{"the default and an extension of it", []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "proxy:8080"}, {Name: "HTTP_PROXY", Value: "$(HTTP_PROXY)0"}}, []string{"HTTP_PROXY"}},
		{"the variables of the entrypoint", []corev1.EnvVar{
			{Name: "TEKTON_PLATFORM_COMMANDS", Value: "{}"}, {Name: "TEKTON_RESOURCE_NAME", Value: "x"}, {Name: "TEKTON_HERMETIC", Value: "0"},
		}, []string{"TEKTON_PLATFORM_COMMANDS", "TEKTON_RESOURCE_NAME", "TEKTON_HERMETIC"}},
		{"a forbidden variable without default", []corev1.EnvVar{{Name: "NO_PROXY"}}, []string{"NO_PROXY"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, defaults.ForbiddenEnv(tc.env)); d != "" {
				t.Errorf("-want, +got: %s", d)
			}
		})
	}
}
