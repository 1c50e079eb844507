// Package upgrade moves a cluster through versions and gates while workloads run, as the
// sections on upgrade, downgrade and version skew of the KEPs have it, and says what
// happened to each workload. It operates nodes, so it runs on podenv's own clusters only:
// `podenv e2e --suite upgrade --procs 1`, with no other suite beside it.
package upgrade

import (
	"testing"

	"podenv.dev/test/e2e/internal/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestUpgrade(t *testing.T) { suite.Run(t, "Upgrade") }
