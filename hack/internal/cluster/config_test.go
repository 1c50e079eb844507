package cluster

import (
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

func TestKindConfig(t *testing.T) {
	cfg := Config{Name: "podenv", NodeImage: "podenv/node:1", Workers: 2, Gates: map[string]bool{"EnvFiles": true}}
	k := cfg.kind()
	if k.Name != "podenv" || !k.FeatureGates["EnvFiles"] {
		t.Errorf("name %q, gates %v", k.Name, k.FeatureGates)
	}
	roles := []v1alpha4.NodeRole{v1alpha4.ControlPlaneRole, v1alpha4.WorkerRole, v1alpha4.WorkerRole}
	if len(k.Nodes) != len(roles) {
		t.Fatalf("%d nodes, want %d", len(k.Nodes), len(roles))
	}
	for i, n := range k.Nodes {
		if n.Role != roles[i] || n.Image != "podenv/node:1" {
			t.Errorf("node %d is a %s of %s", i, n.Role, n.Image)
		}
		if len(n.ExtraMounts) != 1 || n.ExtraMounts[0].ContainerPath != marker {
			t.Errorf("node %d does not carry the mark: %+v", i, n.ExtraMounts)
		}
	}
}

func TestValidateName(t *testing.T) {
	tests := map[string]bool{
		"podenv": true, "v1.33-stock": true, "a": true,
		"": false, "-a": false, "a-": false, "A": false, "a_b": false, "a b": false, ".": false, "a/../b": false,
	}
	for name, valid := range tests {
		if err := validateName(name); (err == nil) != valid {
			t.Errorf("validateName(%q): %v", name, err)
		}
	}
}
