package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// proofCluster is the cluster that Prove creates and deletes.
const proofCluster = "podenv-nodeimage"

const (
	// readyTime is how long Prove waits from the call of kind until all pods are Ready:
	// a deadline, far above the time that it takes and that Prove prints.
	readyTime = 4 * time.Minute
	// answerTime is how long a node or a pod may take to do what it is asked.
	answerTime = 2 * time.Minute
	// probeInterval is how often Prove looks whether something is so by now.
	probeInterval = 500 * time.Millisecond
)

// proofConfig is the cluster of a person who has heard of kind only.
const proofConfig = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
- role: worker
`

// Prove creates a cluster of two nodes from the node image ref with the plain kind
// command line, looks for everything that such a cluster promises, and deletes it.
// testImages are archives that have the image podenv.dev/busybox:1. What it saw goes
// to the step's log; the error names every promise that was not kept.
func Prove(ctx context.Context, l layout.Layout, e *engine.Engine, ref string, testImages []string, step *progress.Step) (err error) {
	dir, err := os.MkdirTemp("", "podenv-nodeimage-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := &proof{layout: l, engine: e, ref: ref, testImages: testImages, step: step, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	if err := os.WriteFile(p.configFile(), []byte(proofConfig), 0o600); err != nil {
		return err
	}
	if err := p.delete(ctx); err != nil { // what an interrupted run left
		return err
	}
	defer func() { err = errors.Join(err, p.deleteAll(ctx)) }()
	var broken []error
	for _, promise := range p.promises() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		step.Now("%s", promise.says)
		saw, err := promise.prove(ctx)
		if err != nil {
			err = fmt.Errorf("broken promise: %s: %w", promise.says, err)
			fmt.Fprintln(step.Log(), err)
			if promise.needed {
				return errors.Join(append(broken, err)...)
			}
			broken = append(broken, err)
			continue
		}
		fmt.Fprintf(step.Log(), "kept: %s: %s\n", promise.says, saw)
	}
	return errors.Join(broken...)
}

// proof is one run of Prove.
type proof struct {
	layout     layout.Layout
	engine     *engine.Engine
	ref        string
	testImages []string
	step       *progress.Step
	dir        string
	kubeconfig string
	started    time.Time
}

// promise is something that a cluster of the image keeps; prove returns what it saw.
type promise struct {
	says   string
	prove  func(context.Context) (saw string, err error)
	needed bool // the promises after it cannot be looked at without it
}

func (p *proof) promises() []promise {
	return []promise{
		{"the image takes at most 1 GB unpacked", p.size, false},
		{"kind create cluster works", p.create, true},
		{"all nodes and pods become Ready", p.ready, true},
		{"kind load image-archive works", p.load, true},
		{"pods on different nodes reach each other with their own addresses", p.podToPod, true},
		{"cluster DNS resolves a service, and the service answers", p.dns, false},
		{"what pods send out of the pod network carries the node's address", p.outside, false},
		{"kubectl logs shows what a container printed", p.logs, false},
		{"kubectl exec runs a command in a container", p.exec, false},
		{"kind export logs works", p.exportLogs, false},
		{"nodes and their pods come back after a restart of the machine", p.restart, false},
	}
}

// kind is the plain kind command line, of the version in go.mod.
func (p *proof) kind(ctx context.Context, args ...string) *run.Cmd {
	args = append([]string{"tool", "kind"}, append(args, "--name", proofCluster)...)
	return run.Command(ctx, "go", args...).Dir(p.layout.Root).Env("KUBECONFIG=" + p.kubeconfig).Log(p.step.Log())
}

func (p *proof) kubectl(ctx context.Context, args ...string) *run.Cmd {
	return run.Command(ctx, filepath.Join(p.dir, "kubectl"), args...).Env("KUBECONFIG=" + p.kubeconfig).Log(p.step.Log())
}

func (p *proof) configFile() string { return filepath.Join(p.dir, "kind.yaml") }

// node is the name of the node, and of its container, with that role.
func (p *proof) node(role string) string { return proofCluster + "-" + role }

// eventually calls f until it returns nil, and returns its last error after timeout.
func eventually(ctx context.Context, timeout time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", timeout, err)
		case <-tick.C:
		}
	}
}
