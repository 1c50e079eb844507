package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
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
	// waitReady is Config.WaitReady's default.
	waitReady = 3 * time.Minute
)

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
	// Kubeconfig is the file that gets the cluster's context; empty for the file
	// that kubectl would use.
	Kubeconfig string
	// WaitReady is how long the cluster may take to serve once kind has made it;
	// 0 means three minutes.
	WaitReady time.Duration
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
	k := &v1alpha4.Cluster{Name: c.Name, FeatureGates: c.Gates}
	k.Networking.APIServerAddress = apiServerAddress
	k.Networking.APIServerPort = int32(c.APIServerPort)
	v1alpha4.SetDefaultsCluster(k)
	k.KubeadmConfigPatches = []string{oneOfEach}
	if c.Verbosity > 0 {
		k.KubeadmConfigPatches = append(k.KubeadmConfigPatches, verbosityPatches(c.Verbosity)...)
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

// oneOfEach is for the one controller manager and the one scheduler that there are. With
// nobody to lead they would end whenever the API server is away for ten seconds, as when
// its build is swapped, and the kubelet starts them again only after a back-off, which
// grows to five minutes. Those that live on list again what they watch up to a minute
// after the API server is back; by then they must not have taken nodes, of which they
// heard nothing, for dead.
//
// Without an apiVersion a patch is for every version of kubeadm's configuration: kind
// converts extraArgs.
const oneOfEach = `kind: ClusterConfiguration
controllerManager:
  extraArgs:
    leader-elect: "false"
    node-monitor-grace-period: 2m0s
scheduler:
  extraArgs:
    leader-elect: "false"
`

// verbosityPatches are merged into what kind gives kubeadm.
func verbosityPatches(v int) []string {
	return []string{
		fmt.Sprintf("kind: ClusterConfiguration\napiServer:\n  extraArgs:\n    v: %q\n", strconv.Itoa(v)),
		fmt.Sprintf("kind: KubeletConfiguration\nlogging:\n  verbosity: %d\n", v),
	}
}

// gateFlag renders gates as the value of a --feature-gates flag, sorted.
func gateFlag(gates map[string]bool) string {
	pairs := make([]string, 0, len(gates))
	for name, on := range gates {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
