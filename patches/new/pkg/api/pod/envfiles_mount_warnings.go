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

package pod

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	api "k8s.io/kubernetes/pkg/apis/core"
	apivalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// WarningsForEnvFileMounts warns of each mount through which a container can write an
// env file while or after the kubelet reads it for another one, or for itself.
//
// KEP-3721, "Container Behavior". It is no error: stored pods have such mounts.
func WarningsForEnvFileMounts(podSpec *api.PodSpec, specPath *field.Path) []string {
	var warnings []string
	for _, err := range apivalidation.ValidateEnvFileMounts(podSpec, specPath) {
		warnings = append(warnings, err.Field+": "+err.Detail)
	}
	return warnings
}
