/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
