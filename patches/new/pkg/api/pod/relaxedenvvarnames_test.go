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
