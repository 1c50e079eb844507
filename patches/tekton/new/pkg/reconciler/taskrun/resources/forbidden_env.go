package resources

import (
	"context"
	"errors"
	"fmt"

	"github.com/tektoncd/pipeline/pkg/apis/config"
	podtpl "github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	corev1 "k8s.io/api/core/v1"
)

// ValidateSubstitutedEnv refuses forbidden variables of a pod template whose name the webhook could
// not know, because a parameter is part of it. The templates are those before and after
// ApplyPodTemplateReplacements. What the webhook has let pass stays.
func ValidateSubstitutedEnv(ctx context.Context, before, after *podtpl.Template) error {
	var substituted []corev1.EnvVar
	for i, e := range after.Env {
		if e.Name != before.Env[i].Name {
			substituted = append(substituted, e)
		}
	}
	var errs []error
	for _, name := range config.FromContextOrDefaults(ctx).Defaults.ForbiddenEnv(substituted) {
		errs = append(errs, fmt.Errorf("%s: spec.podTemplate.env[%s]", config.ForbiddenEnvMessage(name), name))
	}
	return errors.Join(errs...)
}
