package suite

import "podenv.dev/featuregates"

// Gates returns the gates that a suite tests. On podenv's own clusters they are required: a
// cluster that lost one must not pass because specs are skipped.
func Gates(suite string) []string {
	switch suite {
	case "relaxed":
		return []string{string(featuregates.RelaxedEnvironmentVariableValidation)}
	case "upgrade":
		return []string{string(featuregates.EnvFiles), string(featuregates.RelaxedEnvironmentVariableValidation)}
	case "podpreset":
		return []string{string(featuregates.PodPreset)}
	case "expansion":
		return []string{string(featuregates.VariableExpansionEvents), string(featuregates.EnvFiles)}
	}
	return []string{string(featuregates.EnvFiles)}
}
