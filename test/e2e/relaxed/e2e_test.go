// Package relaxed proves KEP-4369 (every printable ASCII character but "=" in the name
// of a variable) on a running cluster. It needs a cluster whose API server and kubelets
// have the gate RelaxedEnvironmentVariableValidation, and breaks nothing on it. Run it
// with `podenv e2e --suite relaxed --kubeconfig FILE`.
package relaxed

import (
	"testing"

	"podenv.dev/test/e2e/internal/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestRelaxed(t *testing.T) { suite.Run(t, "Relaxed") }
