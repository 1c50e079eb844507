// Package envfiles proves KEP-3721 (env[].valueFrom.fileKeyRef) on a running
// cluster. It needs a cluster whose API server and kubelets have the gate EnvFiles,
// and breaks nothing on it. Run it with `podenv e2e --kubeconfig FILE`.
package envfiles

import (
	"testing"

	"podenv.dev/test/e2e/internal/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestEnvFiles(t *testing.T) { suite.Run(t, "EnvFiles") }
