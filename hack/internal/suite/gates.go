package suite

import "podenv.dev/featuregates"

// Gates are the gates that a suite is about. podenv turns them on: a cluster of its own that
// lost one must not pass by skipping.
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
