package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"podenv.dev/featuregates"
)

const (
	// marker is a mount that marks podenv's nodes. kind cannot label node containers, but it
	// can mount, and docker also lists the mounts of a container that was never started.
	marker = "/etc/podenv.dev/cluster"
	// markerSource exists on every host, so that a restarted node finds it.
	markerSource = "/dev/null"
	// nameMax is the limit of a host name, 64 bytes, less "-control-plane".
	nameMax = 50
)

// Config is the configuration of a cluster.
type Config struct {
	// Name is kind's name of the cluster; its context is called kind-<Name>.
	Name string
	// NodeImage is a reference of an image that the container engine has; it is never pulled.
	NodeImage string
	// ControlPlanes is their number; 0 means 1.
	ControlPlanes int
	// Workers is the number of nodes beside the control planes.
	Workers int
	// Gates are set on every component. The node image's release must know each of them.
	Gates map[string]bool
	// APIServerPort is the API server's port on this host's 127.0.0.1; 0 means any free port,
	// or the current one of a cluster that exists.
	APIServerPort int
	// Verbosity is klog's -v of the API server and the kubelets; 0 leaves Kubernetes' default.
	Verbosity int
	// Images are image archives, as `docker save` writes them, to load onto every node.
	Images []string
	// Recreate allows to recreate a cluster that differs or does not serve, even if something
	// runs on it, which is then lost.
	Recreate bool
	// Temporary keeps the nodes from starting again with the container engine, should the run be killed.
	Temporary bool
	// Kind is the user's configuration of kind, if not nil; see ReadKindConfig.
	Kind *v1alpha4.Cluster
	// Verifier checks images on the nodes, unless it is nil.
	Verifier *Verifier
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

func (c *Config) validate() error {
	err := errors.Join(ValidateName(c.Name), CheckControlPlanes(cmp.Or(c.ControlPlanes, 1)), validatePort(c.APIServerPort))
	switch {
	case err != nil:
		return err
	case c.NodeImage == "":
		return fmt.Errorf("cluster %s has no node image: build one with `podenv image`", c.Name)
	case c.Workers < 0:
		return fmt.Errorf("cluster %s cannot have %d workers: ask for 0 or more", c.Name, c.Workers)
	}
	return nil
}

// CheckControlPlanes returns an error for a number of control planes that no cluster can have.
func CheckControlPlanes(n int) error {
	if n < 1 || n > 5 || n%2 == 0 {
		return fmt.Errorf("a cluster cannot have %d control planes: ask for 1, 3 or 5, because etcd needs most of its members", n)
	}
	return nil
}

// ValidateName returns an error if no cluster, with its nodes, can have the name.
func ValidateName(name string) error {
	if !validName.MatchString(name) || len(name) > nameMax {
		return fmt.Errorf("%q cannot name a cluster: use at most %d lower-case letters, digits, '-' and '.', the first and the last one a letter or a digit", name, nameMax)
	}
	return nil
}

func (c *Config) kind() *v1alpha4.Cluster {
	k := &v1alpha4.Cluster{
		Name:                 c.Name,
		FeatureGates:         c.gates(),
		RuntimeConfig:        make(map[string]string), // versions of APIs that are off by default
		KubeadmConfigPatches: []string{singleReplica},
	}
	if c.ControlPlanes > 1 {
		k.KubeadmConfigPatches[0] = strings.ReplaceAll(singleReplica, `"false"`, `"true"`)
		if c.Workers == 0 { // kind lets pods on the control plane if it is the only node
			for _, kind := range []string{"InitConfiguration", "JoinConfiguration"} {
				k.KubeadmConfigPatches = append(k.KubeadmConfigPatches, "kind: "+kind+"\nnodeRegistration:\n  taints: []\n")
			}
		}
	}
	k.Networking.APIServerAddress = apiServerAddress
	k.Networking.APIServerPort = int32(c.APIServerPort)
	if c.Verbosity > 0 {
		k.KubeadmConfigPatches = append(k.KubeadmConfigPatches,
			fmt.Sprintf("kind: ClusterConfiguration\napiServer:\n  extraArgs:\n    v: %q\n", strconv.Itoa(c.Verbosity)),
			fmt.Sprintf("kind: KubeletConfiguration\nlogging:\n  verbosity: %d\n", c.Verbosity))
	}
	if c.Verifier != nil {
		k.ContainerdConfigPatches = []string{askVerifiers}
	}
	switches := featuregates.SwitchesOf(k.FeatureGates)
	for _, version := range switches.RuntimeConfig {
		k.RuntimeConfig[version] = "true"
	}
	if len(switches.AdmissionPlugins) > 0 {
		// The list replaces kubeadm's own, which is NodeRestriction.
		k.KubeadmConfigPatches = append(k.KubeadmConfigPatches, "kind: ClusterConfiguration\napiServer:\n  extraArgs:\n"+
			"    enable-admission-plugins: NodeRestriction,"+strings.Join(switches.AdmissionPlugins, ",")+"\n")
	}
	node := v1alpha4.Node{Image: c.NodeImage, ExtraMounts: []v1alpha4.Mount{{HostPath: markerSource, ContainerPath: marker, Readonly: true}}}
	for i := range max(1, c.ControlPlanes) + c.Workers {
		node.Role = v1alpha4.WorkerRole
		if i < max(1, c.ControlPlanes) {
			node.Role = v1alpha4.ControlPlaneRole
		}
		k.Nodes = append(k.Nodes, node)
	}
	return c.merge(k)
}

// singleReplica configures the only controller manager and the only scheduler. With leader election they would
// exit whenever the API server is down for ten seconds, for example while its build is swapped, and the kubelet
// would restart them after a back-off of up to five minutes. After the API server returns, they need up to a
// minute to list what they watch. Until then they get no heartbeats and must not mark nodes as unreachable.
//
// A patch without an apiVersion is for every version of kubeadm's configuration: kind converts extraArgs.
const singleReplica = `kind: ClusterConfiguration
controllerManager:
  extraArgs:
    leader-elect: "false"
    node-monitor-grace-period: 2m0s
scheduler:
  extraArgs:
    leader-elect: "false"
`

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
	patches := []string{fmt.Sprint(k.KubeadmConfigPatches, k.KubeadmConfigPatchesJSON6902)}
	for _, n := range k.Nodes {
		patches = append(patches, fmt.Sprint(n.KubeadmConfigPatches, n.KubeadmConfigPatchesJSON6902))
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
	for _, plugin := range featuregates.SwitchesOf((&Config{Gates: gates, Kind: k}).gates()).AdmissionPlugins {
		if slices.ContainsFunc(patches, func(p string) bool {
			return strings.Contains(p, "enable-admission-plugins") && !strings.Contains(p, plugin)
		}) {
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
	out.ContainerdConfigPatches = append(out.ContainerdConfigPatches, k.ContainerdConfigPatches...)
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
