// Package tekton proves TEP-0101 on a cluster that `podenv tekton` has put the patched Tekton
// Pipelines on. Specs that change the configuration of Tekton run alone. Run it with `podenv e2e
// --suite tekton`.
package tekton

import (
	"testing"

	"podenv.dev/test/e2e/internal/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestTekton(t *testing.T) { suite.Run(t, "Tekton") }
