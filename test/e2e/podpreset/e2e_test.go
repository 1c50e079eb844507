// Package podpreset proves the document "Pod Preset" on a running cluster whose API server
// has the gate PodPreset, the version settings.k8s.io/v1alpha1 and the admission plugin
// PodPreset on. It breaks nothing. Run it with `podenv e2e --suite podpreset --kubeconfig
// FILE`.
package podpreset

import (
	"testing"

	"podenv.dev/test/e2e/internal/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestPodPreset(t *testing.T) { suite.Run(t, "PodPreset") }
