/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
