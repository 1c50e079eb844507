package pods

import (
	"fmt"
	"strings"
)

// WriteEnvFile returns a shell command that writes an env file with the variables env, each
// as NAME=VALUE. The shell expands references in them. Kubelets of all minors read the file
// alike: it has the form of test/corpus/both-forms.env. No value may contain a single quote.
func WriteEnvFile(file string, env ...string) string {
	var quoted strings.Builder
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&quoted, "NEXT= \\\\\n%s='%s'\n", name, value)
	}
	return fmt.Sprintf("cat > %s <<END\nDOTENV='\n%s\nQUOTED='\n%sEND\n", file, strings.Join(env, "\n"), quoted.String())
}
