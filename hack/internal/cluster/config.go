package cluster

import (
	"fmt"
	"regexp"
	"strconv"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"podenv.dev/featuregates"
)

const (
	// marker is mounted into every node from its first moment on. kind has no
	// labels for node containers, but it has mounts, and docker lists those of a
	// container that was never started, too.
	marker = "/etc/podenv.dev/cluster"
	// markerSource exists on every host, so that a restarted node finds it.
	markerSource = "/dev/null"
	// nameMax is what is left of a host name's 64 bytes after "-control-plane".
	nameMax = 50
)

// ValidatingAdmissionPolicy is a gate of Kubernetes v1.29, beta and off by default. A cluster
// that has it on also serves the API, whose version v1beta1 has a switch of its own.
const ValidatingAdmissionPolicy = "ValidatingAdmissionPolicy"

// Config says what a cluster is made from.
type Config struct {
	// Name is kind's name of the cluster; its context is called kind-<Name>.
	Name string
	// NodeImage is a reference of an image that the container engine has; it is
	// never pulled.
	NodeImage string
	// Workers is the number of nodes beside the one control plane.
	Workers int
	// Gates are set on every component. Each must be known to the node image's release.
	Gates map[string]bool
	// APIServerPort is where the API server listens on this host's 127.0.0.1; 0 means
	// any port that is free, or the one that a cluster has already.
	APIServerPort int
	// Verbosity is klog's -v of the API server and the kubelets; 0 leaves Kubernetes'
	// default.
	Verbosity int
	// Images are archives, as `docker save` writes them, that every node gets.
	Images []string
	// Recreate recreates a cluster that differs or does not serve even if something runs
	// on it, which is then lost.
	Recreate bool
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

func (c *Config) validate() error {
	if err := validateName(c.Name); err != nil {
		return err
	}
	if c.NodeImage == "" {
		return fmt.Errorf("cluster %s has no node image: build one with `podenv image`", c.Name)
	}
	if c.Workers < 0 {
		return fmt.Errorf("cluster %s cannot have %d workers: ask for 0 or more", c.Name, c.Workers)
	}
	if err := validatePort(c.APIServerPort); err != nil {
		return err
	}
	if c.Verbosity < 0 {
		return fmt.Errorf("cluster %s cannot log at verbosity %d: ask for 0 or more", c.Name, c.Verbosity)
	}
	return nil
}

func validateName(name string) error {
	if !validName.MatchString(name) || len(name) > nameMax {
		return fmt.Errorf("%q cannot name a cluster: use at most %d lower-case letters, digits, '-' and '.', the first and the last one a letter or a digit", name, nameMax)
	}
	return nil
}

// kind is the configuration that kind creates the cluster from.
func (c *Config) kind() *v1alpha4.Cluster {
	k := &v1alpha4.Cluster{
		Name:                 c.Name,
		FeatureGates:         c.Gates,
		RuntimeConfig:        make(map[string]string), // versions of APIs that are off by default
		KubeadmConfigPatches: []string{singleReplica},
	}
	k.Networking.APIServerAddress = apiServerAddress
	k.Networking.APIServerPort = int32(c.APIServerPort)
	if c.Verbosity > 0 {
		k.KubeadmConfigPatches = append(k.KubeadmConfigPatches,
			fmt.Sprintf("kind: ClusterConfiguration\napiServer:\n  extraArgs:\n    v: %q\n", strconv.Itoa(c.Verbosity)),
			fmt.Sprintf("kind: KubeletConfiguration\nlogging:\n  verbosity: %d\n", c.Verbosity))
	}
	if c.Gates[string(featuregates.PodPreset)] {
		// The API server has switches for the API and the admission plugin beside the gate. A
		// list of plugins takes the place of kubeadm's own, which is NodeRestriction.
		k.RuntimeConfig["settings.k8s.io/v1alpha1"] = "true"
		k.KubeadmConfigPatches = append(k.KubeadmConfigPatches,
			"kind: ClusterConfiguration\napiServer:\n  extraArgs:\n    enable-admission-plugins: NodeRestriction,PodPreset\n")
	}
	if c.Gates[ValidatingAdmissionPolicy] {
		k.RuntimeConfig["admissionregistration.k8s.io/v1beta1"] = "true"
	}
	k.Nodes = make([]v1alpha4.Node, 1+c.Workers)
	for i := range k.Nodes {
		role := v1alpha4.WorkerRole
		if i == 0 {
			role = v1alpha4.ControlPlaneRole
		}
		k.Nodes[i] = v1alpha4.Node{
			Role:  role,
			Image: c.NodeImage,
			ExtraMounts: []v1alpha4.Mount{
				{HostPath: markerSource, ContainerPath: marker, Readonly: true},
			},
		}
	}
	return k
}

// singleReplica is for the only controller manager and the only scheduler. With leader
// election they would end whenever the API server is away for ten seconds, for example
// while its build is swapped, and the kubelet restarts them after a back-off of up to five
// minutes. After an API server was away they need up to a minute to list what they watch;
// until then they must not take nodes, from which they heard nothing, for dead.
//
// A patch without an apiVersion is for every version of kubeadm's configuration: kind
// converts extraArgs.
const singleReplica = `kind: ClusterConfiguration
controllerManager:
  extraArgs:
    leader-elect: "false"
    node-monitor-grace-period: 2m0s
scheduler:
  extraArgs:
    leader-elect: "false"
`
