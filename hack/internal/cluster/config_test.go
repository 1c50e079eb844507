package cluster

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"podenv.dev/featuregates"
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

func TestSeveralControlPlanes(t *testing.T) {
	for _, test := range []struct {
		controlPlanes, workers int
		roles                  string
		untainted              bool
	}{
		{0, 1, "control-plane worker", false},
		{3, 1, "control-plane control-plane control-plane worker", false},
		{3, 0, "control-plane control-plane control-plane", true},
	} {
		k := (&Config{Name: "podenv", NodeImage: "podenv/node:1", ControlPlanes: test.controlPlanes, Workers: test.workers}).kind()
		var roles []string
		for _, n := range k.Nodes {
			roles = append(roles, string(n.Role))
		}
		if got := strings.Join(roles, " "); got != test.roles {
			t.Errorf("%+v: nodes %s", test, got)
		}
		patches := strings.Join(k.KubeadmConfigPatches, "\n")
		if elects := strings.Count(patches, `leader-elect: "true"`) == 2; elects != (test.controlPlanes > 1) {
			t.Errorf("%+v: controllers elect a leader: %t", test, elects)
		}
		if got := strings.Contains(patches, "taints: []"); got != test.untainted {
			t.Errorf("%+v: pods run on control planes: %t", test, got)
		}
	}
	for n, valid := range map[int]bool{-1: false, 0: true, 1: true, 2: false, 3: true, 4: false, 5: true, 7: false} {
		if err := (&Config{Name: "podenv", NodeImage: "podenv/node:1", ControlPlanes: n}).validate(); (err == nil) != valid {
			t.Errorf("%d control planes: %v", n, err)
		}
	}
}

func TestPortOfTheAPIServer(t *testing.T) {
	cfg := Config{Name: "podenv", NodeImage: "podenv/node:1", APIServerPort: 6443}
	if got := cfg.kind().Networking; got.APIServerAddress != "127.0.0.1" || got.APIServerPort != 6443 {
		t.Errorf("kind is told %s:%d, want 127.0.0.1:6443", got.APIServerAddress, got.APIServerPort)
	}
}

func TestWhatKindGivesKubeadm(t *testing.T) {
	controllers := map[string]any{
		"kind":              "ClusterConfiguration",
		"controllerManager": map[string]any{"extraArgs": map[string]any{"leader-elect": "false", "node-monitor-grace-period": "2m0s"}},
		"scheduler":         map[string]any{"extraArgs": map[string]any{"leader-elect": "false"}},
	}
	tests := map[string]struct {
		config Config
		want   []any
	}{
		"the one of each controller gets over an API server that is away": {Config{}, []any{controllers}},
		"with a verbosity": {Config{Verbosity: 4}, []any{
			controllers,
			map[string]any{"kind": "ClusterConfiguration", "apiServer": map[string]any{"extraArgs": map[string]any{"v": "4"}}},
			map[string]any{"kind": "KubeletConfiguration", "logging": map[string]any{"verbosity": 4.0}},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []any
			for _, patch := range test.config.kind().KubeadmConfigPatches {
				object := map[string]any{}
				if err := yaml.Unmarshal([]byte(patch), &object); err != nil {
					t.Fatalf("%q: %v", patch, err)
				}
				got = append(got, object)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("patches (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestValidateName(t *testing.T) {
	tests := map[string]bool{
		"podenv": true, "v1.33-stock": true, "a": true,
		"": false, "-a": false, "a-": false, "A": false, "a_b": false, "a b": false, ".": false, "a/../b": false,
	}
	for name, valid := range tests {
		if err := ValidateName(name); (err == nil) != valid {
			t.Errorf("ValidateName(%q): %v", name, err)
		}
	}
}

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

// TestTheFileForKindUsersHasTheSameSwitches compares docs/kind.yaml with the cluster of podenv up.
func TestTheFileForKindUsersHasTheSameSwitches(t *testing.T) {
	file, err := os.ReadFile("../../../docs/kind.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got v1alpha4.Cluster
	if err := yaml.UnmarshalStrict(file, &got); err != nil {
		t.Fatal(err)
	}
	for _, minor := range []string{"v1.29", "v1.33", "v1.37"} {
		gates, err := featuregates.Enabled(minor)
		if err != nil {
			t.Fatal(err)
		}
		want := (&Config{Gates: gates}).kind()
		if diff := cmp.Diff(want.FeatureGates, got.FeatureGates); diff != "" {
			t.Errorf("gates of %s (-want +got):\n%s", minor, diff)
		}
		if diff := cmp.Diff(want.RuntimeConfig, got.RuntimeConfig); diff != "" {
			t.Errorf("APIs (-want +got):\n%s", diff)
		}
		plugins := regexp.MustCompile(`enable-admission-plugins: .+`)
		if want := plugins.FindString(strings.Join(want.KubeadmConfigPatches, "\n")); plugins.FindString(strings.Join(got.KubeadmConfigPatches, "\n")) != want {
			t.Errorf("the plugins are not %q", want)
		}
	}
}

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
