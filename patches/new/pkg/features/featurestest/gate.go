// Package featurestest sets feature gates in tests.
package featurestest

import (
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

// SetGate sets a feature gate until the test ends.
func SetGate(tb testing.TB, gate featuregate.Feature, on bool) {
	tb.Helper()
	featuregatetesting.SetFeatureGateDuringTest(tb, utilfeature.DefaultFeatureGate, gate, on)
}
