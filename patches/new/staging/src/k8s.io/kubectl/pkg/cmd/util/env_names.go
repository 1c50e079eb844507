package util

import (
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/term"
)

// WarnOfEnvVars is WarnOfEnvVarName for each of the variables.
func WarnOfEnvVars(errOut io.Writer, env []corev1.EnvVar) {
	for i := range env {
		WarnOfEnvVarName(errOut, env[i].Name)
	}
}

// WarnOfKeys is WarnOfEnvVarName for each of the keys of data, sorted.
func WarnOfKeys[V any](errOut io.Writer, data map[string]V) {
	for _, key := range sets.List(sets.KeySet(data)) {
		WarnOfEnvVarName(errOut, key)
	}
}

// WarnOfEnvVarName warns on errOut of the name of an environment variable that
// strict validation refuses. It depends on the cluster whether the name is
// accepted (KEP-4369), so the server decides.
func WarnOfEnvVarName(errOut io.Writer, name string) {
	if len(validation.IsEnvVarName(name)) == 0 {
		return
	}
	warnings := printers.NewWarningPrinter(errOut, printers.WarningPrinterOptions{Color: term.AllowsColorOutput(errOut)})
	warnings.Print(fmt.Sprintf("%q can be the name of an environment variable only in a cluster with the feature gate RelaxedEnvironmentVariableValidation", name))
}
