package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"podenv.dev/featuregates"
)

// ReadKindConfig reads a configuration of kind, to be merged with podenv's, into c. Its nodes
// count instead of c.ControlPlanes and c.Workers. Its admission plugins must have those that gates need.
func (c *Config) ReadKindConfig(file string, gates map[string]bool) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	k := new(v1alpha4.Cluster)
	if err := yaml.UnmarshalStrict(data, k); err != nil {
		return fmt.Errorf("%s is no configuration of kind: %w", file, err)
	}
	controlPlanes := 0
	for _, n := range k.Nodes {
		if n.Role != v1alpha4.WorkerRole {
			controlPlanes++
		}
		if n.Image != "" {
			err = errors.Join(err, errors.New("a node has an image: leave it out, or name it with --image"))
		}
	}
	if k.Kind != "Cluster" || k.APIVersion != "kind.x-k8s.io/v1alpha4" {
		err = errors.Join(err, errors.New("want kind: Cluster and apiVersion: kind.x-k8s.io/v1alpha4"))
	}
	if k.Name != "" && k.Name != c.Name {
		err = errors.Join(err, fmt.Errorf("its name is %s, not %s: leave it out, or name it with --name", k.Name, c.Name))
	}
	if len(k.Nodes) > 0 {
		err = errors.Join(err, CheckControlPlanes(controlPlanes))
	}
	patches := strings.Join(k.KubeadmConfigPatches, "\n")
	for _, plugin := range featuregates.SwitchesOf((&Config{Gates: gates, Kind: k}).gates()).AdmissionPlugins {
		if strings.Contains(patches, "enable-admission-plugins") && !strings.Contains(patches, plugin) {
			err = errors.Join(err, fmt.Errorf("its enable-admission-plugins replace podenv's: add %s to them", plugin))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if c.Kind = k; len(k.Nodes) > 0 {
		c.ControlPlanes, c.Workers = controlPlanes, len(k.Nodes)-controlPlanes
	}
	return nil
}

// gates returns the gates of the cluster: c.Gates, and the user's, which win.
func (c *Config) gates() map[string]bool {
	gates := map[string]bool{}
	maps.Copy(gates, c.Gates)
	if c.Kind != nil {
		maps.Copy(gates, c.Kind.FeatureGates)
	}
	return gates
}

// merge adds the user's configuration to k, podenv's own with all gates. The user's switches win,
// and kubeadm applies the user's patches last.
func (c *Config) merge(k *v1alpha4.Cluster) *v1alpha4.Cluster {
	if c.Kind == nil {
		return k
	}
	out := c.Kind.DeepCopy()
	maps.Copy(k.RuntimeConfig, out.RuntimeConfig)
	out.Name, out.FeatureGates, out.RuntimeConfig = k.Name, k.FeatureGates, k.RuntimeConfig
	out.KubeadmConfigPatches = append(k.KubeadmConfigPatches, out.KubeadmConfigPatches...)
	if out.Networking.APIServerAddress == "" {
		out.Networking.APIServerAddress = k.Networking.APIServerAddress
	}
	if k.Networking.APIServerPort != 0 {
		out.Networking.APIServerPort = k.Networking.APIServerPort
	}
	if len(out.Nodes) == 0 {
		out.Nodes = k.Nodes
		return out
	}
	for i := range out.Nodes {
		out.Nodes[i].Image = c.NodeImage
		out.Nodes[i].ExtraMounts = append(out.Nodes[i].ExtraMounts, k.Nodes[0].ExtraMounts...)
	}
	return out
}
