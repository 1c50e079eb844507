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
	"fmt"
	"testing"

	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
)

func TestRelaxedEnvVarNamesAreAllowed(t *testing.T) {
	named := func(name, prefix string) []api.Container {
		return []api.Container{{Env: []api.EnvVar{{Name: name}}, EnvFrom: []api.EnvFromSource{{}, {Prefix: prefix}}}}
	}
	strict, relaxed := named("A", "P_"), named("A:B", "P_")
	olds := map[string]*api.PodSpec{
		"create":                                   nil,
		"update of strict names":                   {InitContainers: strict, Containers: strict},
		"update of a relaxed name":                 {Containers: relaxed},
		"update of a relaxed prefix":               {Containers: named("A", "P:")},
		"update of a relaxed name of init":         {InitContainers: relaxed, Containers: strict},
		"update of a relaxed name of an ephemeral": {EphemeralContainers: []api.EphemeralContainer{{EphemeralContainerCommon: api.EphemeralContainerCommon(relaxed[0])}}},
	}
	for _, enabled := range []bool{false, true} {
		for name, old := range olds {
			t.Run(fmt.Sprintf("gate %t, %s", enabled, name), func(t *testing.T) {
				featurestest.SetGate(t, features.RelaxedEnvironmentVariableValidation, enabled)
				want := enabled || old != nil && name != "update of strict names"
				if got := GetValidationOptionsFromPodSpecAndMeta(&api.PodSpec{}, old, nil, nil).AllowRelaxedEnvironmentVariableValidation; got != want {
					t.Errorf("expected %t, got %t", want, got)
				}
			})
		}
	}
}
