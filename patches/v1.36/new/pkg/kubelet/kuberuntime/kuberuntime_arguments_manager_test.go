package kuberuntime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"k8s.io/kubernetes/test/utils/ktesting"
)

// newTestManager returns a runtime manager with a runtime and images for tests.
func newTestManager(t *testing.T) *kubeGenericRuntimeManager {
	t.Helper()
	_, _, m, err := createTestRuntimeManager(ktesting.Init(t))
	require.NoError(t, err)
	return m
}
