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
	const pod = `{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "static", "namespace": "default"},
		"spec": {"containers": [{"name": "app", "image": "app", "env": [{"name": "NAME", "value": "value"}]}]}}`
	manifests := map[string]func(string) error{
		pod: func(manifest string) error {
			_, _, err := tryDecodeSinglePod([]byte(manifest), noDefault)
			return err
		},
		`{"kind": "PodList", "apiVersion": "v1", "items": [` + pod + "]}": func(manifest string) error {
			_, _, err := tryDecodePodList([]byte(manifest), noDefault)
			return err
		},
	}
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
		for manifest, decode := range manifests {
			err := decode(strings.ReplaceAll(manifest, "NAME", tc.name))
			if refused := err != nil; refused != tc.refused {
				t.Errorf("%s, gate %v: want refused: %v, got: %v", tc.name, tc.relaxed, tc.refused, err)
			}
			if tc.refused && err != nil && !strings.Contains(err.Error(), "env[0].name") {
				t.Errorf("%s: want an error of the name, got: %v", tc.name, err)
			}
		}
	}
}
