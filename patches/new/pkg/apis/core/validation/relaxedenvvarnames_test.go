package validation

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
)

func TestValidateRelaxedEnvVarNames(t *testing.T) {
	for name, want := range map[string]struct{ strict, relaxed bool }{
		"A":                        {strict: true, relaxed: true},
		"a.b-C_1":                  {strict: true, relaxed: true},
		"Logging:LogLevel:Default": {relaxed: true},
		"1A":                       {relaxed: true},
		"A B":                      {relaxed: true},
		" ":                        {relaxed: true},
		"$(A)":                     {relaxed: true},
		"..":                       {relaxed: true},
		"A=B":                      {},
		"Ä":                        {},
		"A\n":                      {},
	} {
		for _, allowed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q, relaxed %t", name, allowed), func(t *testing.T) {
				opts := PodValidationOptions{AllowRelaxedEnvironmentVariableValidation: allowed}
				valid := want.strict
				if allowed {
					valid = want.relaxed
				}
				errs := ValidateEnv([]core.EnvVar{{Name: name, Value: "value"}}, field.NewPath("env"), opts)
				if got := len(errs) == 0; got != valid {
					t.Errorf("env: expected valid %t, got %v", valid, errs)
				}
				from := []core.EnvFromSource{{Prefix: name, ConfigMapRef: &core.ConfigMapEnvSource{LocalObjectReference: core.LocalObjectReference{Name: "abc"}}}}
				errs = ValidateEnvFrom(from, field.NewPath("envFrom"), opts)
				if got := len(errs) == 0; got != valid {
					t.Errorf("envFrom: expected valid %t, got %v", valid, errs)
				}
			})
		}
	}
}
