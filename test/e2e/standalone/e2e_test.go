// Package standalone proves KEP-3721 on a kubelet that has no API server. It stops the
// kubelet of a node for a minute, and with it every pod there; the node brings it back
// by itself, however the suite ends. Run it with
// `podenv e2e --suite standalone --kubeconfig FILE`, with no other suite beside it.
package standalone

import (
	"testing"

	"podenv.dev/test/e2e/internal/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestStandalone(t *testing.T) { suite.Run(t, "Standalone") }
