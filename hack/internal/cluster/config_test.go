package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
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

func TestKindConfigHasTheVerbosity(t *testing.T) {
	plain := Config{Name: "podenv", NodeImage: "podenv/node:1"}
	if patches := plain.kind().KubeadmConfigPatches; len(patches) != 0 {
		t.Errorf("patches without a verbosity: %q", patches)
	}
	verbose := plain
	verbose.Verbosity = 4
	got := map[string]any{}
	for _, patch := range verbose.kind().KubeadmConfigPatches {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(patch), &object); err != nil {
			t.Fatalf("%q: %v", patch, err)
		}
		got[object["kind"].(string)] = object
	}
	want := map[string]any{
		"ClusterConfiguration": map[string]any{
			"kind":      "ClusterConfiguration",
			"apiServer": map[string]any{"extraArgs": map[string]any{"v": "4"}},
		},
		"KubeletConfiguration": map[string]any{
			"kind":    "KubeletConfiguration",
			"logging": map[string]any{"verbosity": 4.0},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patches (-want, +got):\n%s", diff)
	}
	verbose.Verbosity = -1
	if err := verbose.validate(); err == nil {
		t.Error("a negative verbosity is accepted")
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
