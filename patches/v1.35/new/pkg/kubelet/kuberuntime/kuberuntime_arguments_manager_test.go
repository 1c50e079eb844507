package kuberuntime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// newTestManager returns a runtime manager with a runtime and images for tests.
func newTestManager(t *testing.T) *kubeGenericRuntimeManager {
	t.Helper()
	_, _, m, err := createTestRuntimeManager(context.Background())
	require.NoError(t, err)
	return m
}
