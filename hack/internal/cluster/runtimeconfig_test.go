package cluster

import (
	"maps"
	"testing"
)

func TestClusterServesTheAPIsOfItsGates(t *testing.T) {
	const policies, presets = "admissionregistration.k8s.io/v1beta1", "settings.k8s.io/v1alpha1"
	for _, test := range []struct {
		gates map[string]bool
		want  map[string]string
	}{
		{nil, nil},
		{map[string]bool{"ValidatingAdmissionPolicy": false, "PodPreset": false}, nil},
		{map[string]bool{"ValidatingAdmissionPolicy": true}, map[string]string{policies: "true"}},
		{map[string]bool{"ValidatingAdmissionPolicy": true, "PodPreset": true}, map[string]string{policies: "true", presets: "true"}},
	} {
		c := Config{Name: "a", NodeImage: "b", Gates: test.gates}
		if got := c.kind().RuntimeConfig; !maps.Equal(got, test.want) {
			t.Errorf("gates %v: the runtime config is %v, want %v", test.gates, got, test.want)
		}
	}
}
