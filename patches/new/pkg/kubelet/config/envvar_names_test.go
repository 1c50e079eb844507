package config

import (
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
)

// The kubelet's gate decides which names a static pod may have.
func TestDecodeStaticPodWithSpecialNames(t *testing.T) {
	const manifest = `
apiVersion: v1
kind: Pod
metadata: {name: static, namespace: default}
spec:
  containers:
  - name: app
    image: app
    env: [{name: "NAME", value: value}]
`
	testCases := []struct {
		name    string
		relaxed bool
		refused bool
	}{
		{name: "Logging:LogLevel", relaxed: true},
		{name: "Logging:LogLevel", relaxed: false, refused: true},
		{name: "PLAIN", relaxed: false},
		{name: "A=B", relaxed: true, refused: true},
	}
	locked := utilfeature.DefaultFeatureGate.DeepCopy().GetAll()[features.RelaxedEnvironmentVariableValidation].LockToDefault
	for _, tc := range testCases {
		switch {
		case !locked:
			featurestest.SetGate(t, features.RelaxedEnvironmentVariableValidation, tc.relaxed)
		case !tc.relaxed:
			continue // from v1.34 on the gate cannot be off
		}
		_, _, err := tryDecodeSinglePod([]byte(strings.ReplaceAll(manifest, "NAME", tc.name)), noDefault)
		if refused := err != nil; refused != tc.refused {
			t.Errorf("%s, gate %v: want refused: %v, got: %v", tc.name, tc.relaxed, tc.refused, err)
		}
		if tc.refused && err != nil && !strings.Contains(err.Error(), "env[0].name") {
			t.Errorf("%s: want an error of the name, got: %v", tc.name, err)
		}
	}
}
