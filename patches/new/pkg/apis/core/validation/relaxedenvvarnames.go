package validation

import "k8s.io/apimachinery/pkg/util/validation"

// validateEnvVarName returns what is wrong with the name of an environment
// variable, or with a prefix of envFrom, by the rule that opts asks for.
func validateEnvVarName(name string, opts PodValidationOptions) []string {
	if opts.AllowRelaxedEnvironmentVariableValidation {
		return validation.IsRelaxedEnvVarName(name)
	}
	return validation.IsEnvVarName(name)
}
