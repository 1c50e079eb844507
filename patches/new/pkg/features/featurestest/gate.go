// Package featurestest sets feature gates in tests.
package featurestest

import (
	"reflect"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

// SetGate sets a feature gate until the test ends.
func SetGate(tb testing.TB, gate featuregate.Feature, on bool) {
	tb.Helper()
	// Up to v1.30 the function returns another one, which sets the gate back.
	set := reflect.ValueOf(featuregatetesting.SetFeatureGateDuringTest)
	for _, restore := range set.Call([]reflect.Value{
		reflect.ValueOf(tb), reflect.ValueOf(utilfeature.DefaultFeatureGate), reflect.ValueOf(gate), reflect.ValueOf(on),
	}) {
		tb.Cleanup(restore.Interface().(func()))
	}
}
