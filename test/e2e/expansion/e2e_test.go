// Package expansion proves the document "Variable expansion" ($(NAME) in env, command
// and args, and the event about a reference that cannot be expanded) on a running
// cluster. The specs of the event need kubelets that have the gate
// VariableExpansionEvents; those of the order run on any cluster. It breaks nothing.
// Run it with `podenv e2e --suite expansion --kubeconfig FILE`.
package expansion

import (
	"testing"

	"podenv.dev/test/e2e/internal/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestExpansion(t *testing.T) { suite.Run(t, "Expansion") }
