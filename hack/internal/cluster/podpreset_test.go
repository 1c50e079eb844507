package cluster

import (
	"strings"
	"testing"
)

func TestClusterWithPodPresetHasAllSwitches(t *testing.T) {
	for _, on := range []bool{true, false} {
		c := Config{Name: "a", NodeImage: "b", Gates: map[string]bool{"PodPreset": on}}
		k := c.kind()
		if got := k.RuntimeConfig["settings.k8s.io/v1alpha1"] == "true"; got != on {
			t.Errorf("gate %t: the API is on: %t", on, got)
		}
		if got := strings.Contains(strings.Join(k.KubeadmConfigPatches, "\n"), "enable-admission-plugins: NodeRestriction,PodPreset\n"); got != on {
			t.Errorf("gate %t: the plugin is on: %t", on, got)
		}
	}
}
