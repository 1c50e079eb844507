package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/progress"
)

const (
	// swapTime is how long a pushed component may take to serve.
	swapTime = time.Minute
	// tailLines is how many of its last log lines the error shows where it does not.
	tailLines = 15
)

// Push swaps one component on the running nodes for the build in the file binary,
// and returns once that very build serves. imageTar is the archive of the image that
// has the binary, for the components that run as pods; the others take none.
//
// If the new build does not come up, or ctx ends, the old one is put back; the error
// then has the last lines of the new one's log.
func (c *Cluster) Push(ctx context.Context, component, binary, imageTar string, step *progress.Step) error {
	if c.record == nil {
		return fmt.Errorf("cluster %s is half-made: run `podenv up`", c.name)
	}
	unlock, err := lock(ctx, c.layout, c.name, step)
	if err != nil {
		return err
	}
	defer unlock()
	sum, err := sumFile(binary)
	if err != nil {
		return fmt.Errorf("pushing %s: %w: build it with `podenv build`", component, err)
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	p := &push{Cluster: c, component: component, binary: binary, image: imageTar, sum: sum, nodes: nodes, step: step}
	s, err := p.swapper()
	if err != nil {
		return err
	}
	if err := p.run(ctx, s); err != nil {
		return fmt.Errorf("pushing %s to cluster %s: %w", component, c.name, err)
	}
	return nil
}

// swapper is the way in which one kind of component is swapped on all its nodes.
type swapper interface {
	// running returns the SHA-256 of the executable of the component on a node.
	running(ctx context.Context, node Node) (string, error)
	// put takes the new build to the nodes without a change to what runs.
	put(ctx context.Context) error
	// turn makes the nodes run the new build.
	turn(ctx context.Context) error
	// serves returns once the build with the SHA-256 sum serves on all nodes.
	serves(ctx context.Context, sum string) error
	// back makes the nodes run the old build again.
	back(ctx context.Context) error
	// tail is the end of the component's log.
	tail(ctx context.Context, node Node) string
	// clean removes what put left beside.
	clean(ctx context.Context) error
}

// push is one call of Push.
type push struct {
	*Cluster
	component string
	binary    string
	image     string
	sum       string // SHA-256 of binary
	nodes     []Node // those that have the component
	step      *progress.Step
}

func (p *push) swapper() (swapper, error) {
	switch p.component {
	case "kubelet":
		return &kubeletSwap{push: p}, nil
	case "kubeadm", "kubectl":
		return &fileSwap{push: p}, nil
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy":
		if p.image == "" {
			return nil, fmt.Errorf("%s runs as a pod: pushing it takes an image", p.component)
		}
	}
	switch p.component {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
		p.nodes = controlPlanes(p.nodes)
		return &staticSwap{push: p}, nil
	case "kube-proxy":
		return &proxySwap{push: p}, nil
	}
	return nil, fmt.Errorf("%q is not a component of a node: push kubelet, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubeadm or kubectl", p.component)
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

func (p *push) run(ctx context.Context, s swapper) error {
	original, same, err := p.compare(ctx, s)
	if err != nil {
		return err
	}
	if same {
		p.step.Cached("the nodes run this build already")
		return nil
	}
	p.step.Now("copying %s to %d nodes", p.component, len(p.nodes))
	if err := s.put(ctx); err != nil {
		return errors.Join(err, s.clean(context.WithoutCancel(ctx)))
	}
	// Recorded before the fact: nodes that a killed run leaves with a mix of builds
	// must not pass for the node image's.
	before := maps.Clone(p.record.Pushed)
	p.record.push(p.component, original, p.sum)
	if err := p.save(ctx); err != nil {
		return err
	}
	err = s.turn(ctx)
	if err == nil {
		p.step.Now("waiting for the new %s to serve", p.component)
		err = s.serves(ctx, p.sum)
	}
	if err == nil {
		return s.clean(ctx)
	}
	return p.revert(ctx, s, original, before, err)
}

// compare returns the build that the nodes run, and whether it is the one to push.
func (p *push) compare(ctx context.Context, s swapper) (original string, same bool, err error) {
	same = true
	for _, node := range p.nodes {
		sum, err := s.running(ctx, node)
		if err != nil {
			return "", false, fmt.Errorf("looking at the %s of node %s: %w", p.component, node.Name, err)
		}
		if sum != p.sum {
			original, same = sum, false
		}
	}
	return original, same, nil
}

// revert puts the old build back after the new one failed with err.
func (p *push) revert(ctx context.Context, s swapper, original string, before map[string]pushed, err error) error {
	if ctx.Err() == nil {
		node := p.nodes[0]
		if at := (*nodeError)(nil); errors.As(err, &at) {
			node = at.node
		}
		if tail := s.tail(ctx, node); tail != "" {
			err = fmt.Errorf("%w\nlast lines of its log on %s:\n%s", err, node.Name, indent(tail))
		}
	}
	p.step.Now("putting the old %s back", p.component)
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*swapTime)
	defer cancel()
	failed := s.back(cleanup)
	if failed == nil {
		failed = s.serves(cleanup, original)
	}
	if failed != nil {
		return fmt.Errorf("%w\nthe old build could not be put back either: run `podenv up`, which makes the cluster anew: %w", err, failed)
	}
	p.record.Pushed = before
	if failed := errors.Join(p.save(cleanup), s.clean(cleanup)); failed != nil {
		return errors.Join(err, failed)
	}
	return fmt.Errorf("%w\nthe old build is back and serves: mend the new one and push it again", err)
}

// nodeError is an error of one node.
type nodeError struct {
	node Node
	err  error
}

func (e *nodeError) Error() string { return fmt.Sprintf("node %s: %v", e.node.Name, e.err) }
func (e *nodeError) Unwrap() error { return e.err }

// each runs f for all nodes of the push at once.
func (p *push) each(ctx context.Context, f func(context.Context, Node) error) error {
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

// write makes the file at path on a node from r.
func (c *Cluster) write(ctx context.Context, node Node, r io.Reader, path, mode string) error {
	return c.docker(ctx, "exec", "--interactive", node.Name, "install", "--mode="+mode, "/dev/stdin", path).Stdin(r).Run()
}

func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
