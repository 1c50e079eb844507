package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/internal/progress"
)

const (
	// swapTime is how long a component that was swapped may take to serve.
	swapTime = time.Minute
	// tailLines is how many of its last log lines the error shows where it does not.
	tailLines = 15
)

// state is what a component runs as: which build, with which gates set.
type state struct {
	// SHA256 is that of the executable.
	SHA256 string `json:"sha256"`
	// Version is what the build says it is, such as "v1.33.13". What is empty is not
	// asked for.
	Version string `json:"version,omitempty"`
	// Gates are those that are set, be it to their default.
	Gates map[string]bool `json:"gates,omitempty"`
}

// change is what a swap brings to its nodes. Its zero value restarts the component.
type change struct {
	binary   string          // file with the new build; empty for the build that is there
	image    string          // archive of the image that has it, for components that run as pods
	gates    map[string]bool // to be set, and no others; nil for those that are set
	original bool            // what was there before node operations, in place of all of the above
}

// swap exchanges one component on some nodes.
type swap struct {
	*Cluster
	change
	component string
	nodes     []Node // those that have the component
	phase     phase
	step      *progress.Step // whose log the container engine's output goes to
}

// phase says what is done now. err is what came of what was done before.
type phase func(err error, format string, args ...any)

// within shows phases as what a step is doing.
func within(step *progress.Step) phase {
	return func(_ error, format string, args ...any) { step.Now(format, args...) }
}

// swapper is the way in which one kind of component is swapped on all its nodes.
type swapper interface {
	// running returns the SHA-256 of the executable of the component on a node.
	running(ctx context.Context, node Node) (string, error)
	// set returns the gates that the configuration of the component on a node sets.
	set(ctx context.Context, node Node) (map[string]bool, error)
	// files are those that a node operation may change: the build, the configuration.
	files() []string
	// put takes the change to the nodes without a change to what runs.
	put(ctx context.Context) error
	// turn makes the change.
	turn(ctx context.Context) error
	// serves returns once the component serves as want on all nodes.
	serves(ctx context.Context, want state) error
	// back takes the change back.
	back(ctx context.Context) error
	// tail is the end of the component's log.
	tail(ctx context.Context, node Node) string
	// clean removes what put left beside.
	clean(ctx context.Context) error
}

func (p *swap) swapper() (swapper, error) {
	switch p.component {
	case "kubelet":
		return &kubeletSwap{swap: p}, nil
	case "kubeadm", "kubectl":
		return &fileSwap{swap: p}, nil
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy":
		if p.image == "" && p.binary != "" {
			return nil, fmt.Errorf("%s runs as a pod: swapping it takes an image", p.component)
		}
	case "etcd":
		if p.binary != "" {
			return nil, fmt.Errorf("etcd is not built from Kubernetes: push or swap another component")
		}
	}
	switch p.component {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd":
		p.nodes = controlPlanes(p.nodes)
		return &staticSwap{swap: p}, nil
	case "kube-proxy":
		return &proxySwap{swap: p}, nil
	}
	return nil, fmt.Errorf("%q is not a component of a node: choose kubelet, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubeadm or kubectl", p.component)
}

func controlPlanes(nodes []Node) []Node {
	var out []Node
	for _, n := range nodes {
		if n.Role == "control-plane" {
			out = append(out, n)
		}
	}
	return out
}

// noted keeps the record in step with the nodes.
type noted struct {
	ahead, back func()
}

// exchange makes the change of p through s, which leads from one state to another, or
// takes it back.
func (p *swap) exchange(ctx context.Context, s swapper, from, to state, note noted) error {
	p.phase(nil, "%s", p.preparing())
	if err := s.put(ctx); err != nil {
		return errors.Join(err, s.clean(context.WithoutCancel(ctx)))
	}
	// Recorded before the fact: nodes that a killed run leaves with a mix of builds
	// must not pass for the node image's.
	note.ahead()
	if err := p.save(ctx); err != nil {
		note.back()
		return errors.Join(err, s.clean(context.WithoutCancel(ctx)))
	}
	p.phase(nil, "restarting %s", p.component)
	err := s.turn(ctx)
	if err == nil {
		p.phase(nil, "waiting for %s to serve", p.component)
		err = s.serves(ctx, to)
	}
	if err == nil {
		// The change is made and recorded: too late to be interrupted.
		return s.clean(context.WithoutCancel(ctx))
	}
	return p.revert(ctx, s, from, note.back, err)
}

// preparing says what put does.
func (p *swap) preparing() string {
	switch {
	case p.binary != "" && len(p.nodes) == 1:
		return "copying " + p.component
	case p.binary != "":
		return fmt.Sprintf("copying %s to %d nodes", p.component, len(p.nodes))
	case p.gates != nil:
		return "writing the gates of " + p.component
	}
	return "preparing " + p.component
}

// revert takes the change back after the component did not come up with it, but failed
// with err.
func (p *swap) revert(ctx context.Context, s swapper, from state, forget func(), err error) error {
	if ctx.Err() == nil {
		node := p.nodes[0]
		if at := (*nodeError)(nil); errors.As(err, &at) {
			node = at.node
		}
		if tail := s.tail(ctx, node); tail != "" {
			err = fmt.Errorf("%w\nlast lines of its log on %s:\n%s", err, node.Name, indent(tail))
		}
	}
	p.phase(err, "putting the old %s back", p.component)
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*swapTime)
	defer cancel()
	failed := s.back(cleanup)
	if failed == nil {
		failed = s.serves(cleanup, from)
	}
	if failed != nil {
		return fmt.Errorf("%w\n%w: run `podenv up`, which makes the cluster anew: %w", err, errNotBack, failed)
	}
	forget()
	if failed := errors.Join(p.save(cleanup), s.clean(cleanup)); failed != nil {
		return errors.Join(err, failed)
	}
	what := "build"
	if p.binary == "" {
		what = "configuration"
	}
	return fmt.Errorf("%w\nthe old %s is back and serves: mend the new one and try again", err, what)
}

// errNotBack is in the chain of an error that leaves a node with neither the new nor the
// old at work.
var errNotBack = errors.New("what was there before could not be put back either")

// nodeError is an error of one node.
type nodeError struct {
	node Node
	err  error
}

func (e *nodeError) Error() string { return fmt.Sprintf("node %s: %v", e.node.Name, e.err) }
func (e *nodeError) Unwrap() error { return e.err }

// each runs f for all nodes of the swap at once.
func (p *swap) each(ctx context.Context, f func(context.Context, Node) error) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, node := range p.nodes {
		g.Go(func() error {
			if err := f(gctx, node); err != nil {
				return &nodeError{node, err}
			}
			return nil
		})
	}
	return g.Wait()
}

// await returns once, on each node, the build that is wanted runs and is well, and says of
// itself what it should.
func (p *swap) await(ctx context.Context, client kubernetes.Interface, want state,
	runs func(context.Context, *processes, Node, string) error, well func(context.Context, kubernetes.Interface, Node) error) error {
	return p.each(ctx, func(ctx context.Context, node Node) error {
		seen := &processes{Cluster: p.Cluster}
		return poll(ctx, swapTime, func(ctx context.Context) error {
			if err := runs(ctx, seen, node, want.SHA256); err != nil {
				return err
			}
			if err := well(ctx, client, node); err != nil {
				return err
			}
			return p.says(ctx, client, node, want)
		})
	})
}

// write makes the file at path on a node from r.
func (c *Cluster) write(ctx context.Context, node Node, r io.Reader, path, mode string) error {
	return c.docker(ctx, "exec", "--interactive", node.Name, "install", "--mode="+mode, "/dev/stdin", path).Stdin(r).Run()
}

// beside is the name of a file for a purpose beside the one at file. The kubelet passes
// over manifests with such a name.
func beside(file, purpose string) string {
	dir, base := path.Split(file)
	return dir + "." + base + "." + purpose
}
