package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"podenv.dev/hack/internal/junit"
)

func TestGatesComparesTheBinariesWithTheTable(t *testing.T) {
	agrees := "EnvFiles=true|false (ALPHA - default=false)\nRelaxedEnvironmentVariableValidation=true|false (BETA - default=true)\n" +
		"VariableExpansionEvents=true|false (ALPHA - default=false)\n"
	for name, tc := range map[string]struct {
		help string
		want junit.Counts
	}{
		"agree":           {agrees, junit.Counts{Passed: 5}},
		"no gate at all":  {"", junit.Counts{Failed: 5}},
		"another default": {"EnvFiles=true|false (ALPHA - default=true)\n", junit.Counts{Failed: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "component")
			script := fmt.Sprintf("#!/bin/sh\ncat <<'END'\n%sEND\n", tc.help)
			if err := os.WriteFile(binary, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			check := Gates("v1.33", func() map[string]string {
				return map[string]string{"kubelet": binary, "kube-apiserver": binary}
			})
			cases, err := check.Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := junit.Count(cases); got != tc.want {
				t.Errorf("counted %v, want %v", got, tc.want)
			}
		})
	}
}
