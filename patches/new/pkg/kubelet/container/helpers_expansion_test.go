package container

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/expansion"
)

func TestCommandAndArgsThatAreTooLongForAProcess(t *testing.T) {
	value := strings.Repeat("s3cr3t ", 1000)
	bomb := strings.Repeat("$(A)", 100)
	many := make([]string, 1000)
	for i := range many {
		many[i] = "$(A)"
	}
	for name, tc := range map[string]struct {
		container v1.Container
		want      string // empty for no error
	}{
		"a word of the command":        {v1.Container{Command: []string{"run", bomb}}, "cannot expand command[1]: the result is longer than a process can be given"},
		"a word of args":               {v1.Container{Command: []string{"run"}, Args: []string{bomb}}, "cannot expand args[0]: the result is longer than a process can be given"},
		"command and args together":    {v1.Container{Command: many[:500], Args: many[:500]}, "cannot expand args[398]: it and what was expanded before are more than a process can be given"},
		"an escape, which is no value": {v1.Container{Args: []string{strings.ReplaceAll(bomb, "$", "$$")}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := ExpandContainerCommandAndArgs(&tc.container, []EnvVar{{Name: "A", Value: value}}, nil)

			if tc.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tc.want)
			assert.NotContains(t, err.Error(), "s3cr3t")
		})
	}
}

// A probe has no way to return an error here. What is left of its command cannot be
// run, as the whole could not.
func TestACommandOfAProbeThatIsTooLongStaysTooLong(t *testing.T) {
	command := ExpandContainerCommandOnlyStatic([]string{"run", strings.Repeat("$(A)", 100_000)}, []v1.EnvVar{{Name: "A", Value: strings.Repeat("x", 1000)}})

	assert.Len(t, command, 2)
	assert.Greater(t, len(command[1]), expansion.MaxString)
	assert.Less(t, len(command[1]), expansion.MaxString+1001)
}
