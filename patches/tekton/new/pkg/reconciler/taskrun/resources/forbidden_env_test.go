package resources_test

import (
	"testing"

	"github.com/tektoncd/pipeline/pkg/apis/config"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/reconciler/taskrun/resources"
	corev1 "k8s.io/api/core/v1"
)

func TestValidateSubstitutedEnv(t *testing.T) {
	cfg := config.FromContextOrDefaults(t.Context())
	cfg.Defaults = cfg.Defaults.DeepCopy()
	cfg.Defaults.DefaultForbiddenEnv = []string{"HTTP_PROXY"}
	ctx := config.ToContext(t.Context(), cfg)
	for _, tc := range []struct{ name, variable, want string }{
		{"another name", "MSG_$(params.n)", ""},
		{"a name that the webhook has let pass", "HTTP_PROXY", ""},
		{"a name that becomes forbidden", "$(params.n)", `"HTTP_PROXY" is not a valid environment variable to define in the podTemplate: spec.podTemplate.env[HTTP_PROXY]`},
		{"a part of a name", "HTTP_$(params.part)", `"HTTP_PROXY" is not a valid environment variable to define in the podTemplate: spec.podTemplate.env[HTTP_PROXY]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := &v1.TaskRun{Spec: v1.TaskRunSpec{Params: v1.Params{
				{Name: "n", Value: *v1.NewStructuredValues("HTTP_PROXY")},
				{Name: "part", Value: *v1.NewStructuredValues("PROXY")},
			}}}
			before := &pod.Template{Env: []corev1.EnvVar{{Name: tc.variable}}}
			got := ""
			if err := resources.ValidateSubstitutedEnv(ctx, before, resources.ApplyPodTemplateReplacements(before, tr)); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
