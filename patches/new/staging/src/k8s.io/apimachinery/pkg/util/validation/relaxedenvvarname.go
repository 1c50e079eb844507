package validation

// IsRelaxedEnvVarName tests if a string is a name that an environment variable
// may have while the feature RelaxedEnvironmentVariableValidation is enabled:
// one or more printable ASCII characters, none of them "=".
func IsRelaxedEnvVarName(value string) []string {
	if len(value) == 0 {
		return []string{"environment variable name " + EmptyError()}
	}
	if !matchesRelaxedEnvVarName(value) {
		return []string{"a valid environment variable name must consist only of printable ASCII characters other than '='"}
	}
	return nil
}
