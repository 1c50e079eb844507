package cluster

import (
	"context"
	"fmt"
	"maps"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/progress"
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
	sum, err := digest.File(binary)
	if err != nil {
		return fmt.Errorf("pushing %s: %w: build it with `podenv build`", component, err)
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	p := &push{
		swap: &swap{
			Cluster: c, change: change{binary: binary, image: imageTar},
			component: component, nodes: nodes, phase: within(step), step: step,
		},
		sum: sum,
	}
	s, err := p.swapper()
	if err != nil {
		return err
	}
	if err := c.record.unchanged(component, p.nodes); err != nil {
		return err
	}
	if err := p.run(ctx, s); err != nil {
		return fmt.Errorf("pushing %s to cluster %s: %w", component, c.name, err)
	}
	return nil
}

// push is one call of Push: a swap on all nodes that have the component.
type push struct {
	*swap
	sum string // SHA-256 of the new build
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
	before := maps.Clone(p.record.Pushed)
	return p.exchange(ctx, s, state{SHA256: original}, state{SHA256: p.sum}, noted{
		ahead: func() { p.record.push(p.component, original, p.sum) },
		back:  func() { p.record.Pushed = before },
	})
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
