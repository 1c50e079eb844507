// Package envfile makes env files, and variables from them, for the suites.
package envfile

import (
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
)

// Quoted reports whether kubelets of the API server's release read env files with
// VAR='VALUE' instead of VAR=VALUE.
func Quoted() bool {
	ginkgo.GinkgoHelper()
	quoted, err := featuregates.QuotesEnvFiles(components.ServerVersion())
	framework.ExpectNoError(err)
	return quoted
}

// Text converts text, lines VAR=VALUE, to the syntax that kubelets of the API server's
// release read. Comments and lines without an equals sign stay as they are.
func Text(text string) string {
	ginkgo.GinkgoHelper()
	if Quoted() {
		return quoteValues(text)
	}
	return text
}

// quoteValues puts the value of each line of the form VAR=VALUE into single quotes.
func quoteValues(text string) string {
	var quoted strings.Builder
	for line := range strings.Lines(text) {
		declaration := strings.TrimSuffix(line, "\n")
		if name, value, ok := strings.Cut(declaration, "="); ok && !strings.HasPrefix(name, "#") {
			declaration = name + "='" + value + "'"
		}
		quoted.WriteString(declaration)
		if strings.HasSuffix(line, "\n") {
			quoted.WriteByte('\n')
		}
	}
	return quoted.String()
}

// Var is a variable from a key of an env file in a volume. With a nil optional, the
// field is not set.
func Var(name, volume, path, key string, optional *bool) v1.EnvVar {
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{
		FileKeyRef: &v1.FileKeySelector{VolumeName: volume, Path: path, Key: key, Optional: optional},
	}}
}

// Script returns a shell command that writes an env file with the variables env, each
// as NAME=VALUE. The shell expands references in them. Kubelets of all minors read the file
// alike: it has the form of test/corpus/both-forms.env. No value may contain a single quote.
func Script(file string, env ...string) string {
	var quoted strings.Builder
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&quoted, "NEXT= \\\\\n%s='%s'\n", name, value)
	}
	return fmt.Sprintf("cat > %s <<END\nDOTENV='\n%s\nQUOTED='\n%sEND\n", file, strings.Join(env, "\n"), quoted.String())
}
