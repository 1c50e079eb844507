package proof

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/run"
)

// kindCluster is the cluster that plainKind creates and deletes.
var kindCluster = layout.MustFind().UniqueName("podenv-nodeimage")

// kindNetwork is the docker network of that cluster. Other clusters of plain kind share one, which
// kind never deletes.
var kindNetwork = "kind-" + kindCluster

const (
	// readyTimeout limits the time from the start of kind until all pods are Ready. It is far
	// more than the usual time, which is logged.
	readyTimeout = 4 * time.Minute
	// requestTimeout limits a request to a node or a pod.
	requestTimeout = 2 * time.Minute
)

// plainKind creates a cluster of two nodes from the node image and docs/kind.yaml with the plain kind
// command line, checks everything that users expect of such a cluster, and deletes it.
func plainKind(c *check) error {
	k := &kindProof{check: c, dir: c.TempDir(), engine: built.value.Engine, image: built.value.Image}
	if err := k.kind(ctx, "delete", "cluster").Run(); err != nil { // what an interrupted run left
		return err
	}
	for _, p := range []struct {
		name   string
		prove  func() (saw string, err error)
		needed bool // the next parts cannot be proven without it
	}{
		{"the image takes at most 1 GB unpacked", k.size, false},
		{"kind create cluster works", k.create, true},
		{"all nodes and pods become Ready", k.ready, true},
		{"docs/kind.yaml turns the feature gates on", k.gatesOn, false},
		{"docs/kind.yaml makes the API server inject PodPresets", k.injects, false},
		{"containers are in the cgroups of their pods", k.cgroups, false},
		{"the tools of kube-proxy's modes start in its container", k.proxyTools, false},
		{"kind load image-archive works", k.load, true},
		{"pods on different nodes reach each other with their own addresses", k.podToPod, true},
		{"cluster DNS resolves a service, and the service answers", k.dns, false},
		{"what pods send out of the pod network carries the node's address", k.egress, false},
		{"volumes of the default StorageClass belong to their node", k.storage, false},
		{"kubectl logs shows what a container printed", k.logs, false},
		{"kubectl exec runs a command in a container", k.exec, false},
		{"kind export logs works", k.exportLogs, false},
		{"nodes and their pods come back after a restart of the machine", k.restart, false},
	} {
		c.step.Now("%s", p.name)
		passed := c.part(p.name, func() error {
			saw, err := p.prove()
			fmt.Fprintf(c.step.Log(), "%s: %s\n", p.name, saw)
			return err
		})
		if !passed && p.needed {
			break
		}
	}
	c.part("kind delete cluster leaves nothing", k.delete)
	return nil
}

// kindProof is one run of plainKind.
type kindProof struct {
	*check
	engine  *engine.Engine
	image   string
	dir     string
	started time.Time
}

// kind is the plain kind command line, of the version in go.mod.
func (k *kindProof) kind(ctx context.Context, args ...string) *run.Cmd {
	args = append([]string{"tool", "kind"}, append(args, "--name", kindCluster)...)
	return run.Command(ctx, "go", args...).Dir(repo.Root).Env("KUBECONFIG="+k.kubeconfig(), cluster.NetworkEnv+"="+kindNetwork).Log(k.step.Log())
}

func (k *kindProof) kubectl(args ...string) *run.Cmd {
	return run.Command(k.ctx, filepath.Join(k.dir, "kubectl"), args...).Env("KUBECONFIG=" + k.kubeconfig()).Log(k.step.Log())
}

func (k *kindProof) docker(args ...string) *run.Cmd {
	return k.engine.Docker(k.ctx, args...).Log(k.step.Log())
}

func (k *kindProof) kubeconfig() string { return filepath.Join(k.dir, "kubeconfig") }

// node returns the name of the node with that role, which is also the name of its container.
func (k *kindProof) node(role string) string { return kindCluster + "-" + role }

// delete deletes the cluster, also after Ctrl-C, and checks that nothing is left.
func (k *kindProof) delete() error {
	clean, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), requestTimeout)
	defer cancel()
	if err := k.kind(clean, "delete", "cluster").Run(); err != nil {
		return err
	}
	left, err := k.engine.Docker(clean, "ps", "--all", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+kindCluster).Output()
	if err == nil && left != "" {
		err = fmt.Errorf("containers %s are left", strings.Fields(left))
	}
	return errors.Join(err, k.engine.Docker(clean, "network", "rm", kindNetwork).Run())
}
