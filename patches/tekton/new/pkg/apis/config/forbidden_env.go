package config

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// entrypointEnv are the variables that steer the entrypoint of a step: which command it runs, whether
// it runs at all, and whether it has a network. Only Tekton sets them.
var entrypointEnv = []string{"TEKTON_PLATFORM_COMMANDS", "TEKTON_RESOURCE_NAME", "TEKTON_HERMETIC"}

// ForbiddenEnv lists the names of the variables of a pod template that the cluster forbids, and
// those that steer the entrypoint. A variable as the default pod template has it is not the run's
// doing and never listed.
func (cfg *Defaults) ForbiddenEnv(env []corev1.EnvVar) []string {
	var names []string
	for _, e := range env {
		if cfg.isForbidden(e.Name) && !cfg.isDefaultEnv(e) && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}

func (cfg *Defaults) isForbidden(name string) bool {
	return slices.Contains(cfg.DefaultForbiddenEnv, name) || IsEntrypointEnv(name)
}

// IsEntrypointEnv reports whether a variable steers the entrypoint of a step.
func IsEntrypointEnv(name string) bool { return slices.Contains(entrypointEnv, name) }

func (cfg *Defaults) isDefaultEnv(e corev1.EnvVar) bool {
	return cfg.DefaultPodTemplate != nil && slices.ContainsFunc(cfg.DefaultPodTemplate.Env, func(d corev1.EnvVar) bool {
		return equality.Semantic.DeepEqual(d, e)
	})
}

// ForbiddenEnvMessage is what TEP-0101 has a run answered that sets a forbidden variable.
func ForbiddenEnvMessage(name string) string {
	return fmt.Sprintf("%q is not a valid environment variable to define in the podTemplate", name)
}
