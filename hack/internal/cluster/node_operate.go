package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// operation is one change of one component of one node.
type operation struct {
	*swap
	node     Node
	swapper  swapper
	recorded componentRecord
	from, to state
	wanted   map[string]bool // gates asked for, those included that the build does not know
	restart  bool            // also where nothing differs; nothing is recorded of it
	result   Changed
}

// operate looks at a component of a node, has plan say what shall become of it, and
// makes that so.
func (c *Cluster) operate(ctx context.Context, node, component string, r *progress.Reporter, plan func(context.Context, *operation) error) (Changed, error) {
	s := &steps{reporter: r, prefix: node + ": "}
	s.phase(nil, "looking at %s", component)
	changed, err := c.operation(ctx, node, component, s, plan)
	return changed, s.end(err)
}

func (c *Cluster) operation(ctx context.Context, name, component string, s *steps, plan func(context.Context, *operation) error) (Changed, error) {
	unlock, err := lock(ctx, c.layout, c.name, s.step)
	if err != nil {
		return Changed{}, err
	}
	defer unlock()
	o, err := c.look(ctx, name, component, s)
	if err != nil {
		return Changed{}, err
	}
	if err := plan(ctx, o); err != nil {
		return Changed{}, err
	}
	if err := o.run(ctx, s); err != nil {
		return Changed{}, fmt.Errorf("%s of node %s: %w", component, name, err)
	}
	o.result.Is = o.to.Version
	return o.result, nil
}

// look finds out what a component of a node is now.
func (c *Cluster) look(ctx context.Context, name, component string, s *steps) (*operation, error) {
	node, err := c.node(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := c.reload(ctx); err != nil {
		return nil, err
	}
	o := &operation{
		swap:   &swap{Cluster: c, component: component, nodes: []Node{node}, phase: s.phase},
		node:   node,
		result: Changed{Node: name, Component: component},
	}
	if err := node.has(component); err != nil {
		return nil, err
	}
	if o.swapper, err = o.swap.swapper(); err != nil {
		return nil, err
	}
	if o.from.Gates, err = o.swapper.set(ctx, node); err != nil {
		return nil, err
	}
	// A component that is down has no version; whatever is wrong shows when the change
	// is made.
	if o.from.SHA256, err = o.swapper.running(ctx, node); err == nil {
		o.from.Version = o.version(ctx)
	}
	recorded, known := c.record.component(name, component)
	if !known {
		recorded = componentRecord{Original: o.from, Gates: o.from.Gates}
	}
	o.recorded, o.wanted = recorded, recorded.Gates
	return o, nil
}

// version is what the component says that it is, or empty.
func (o *operation) version(ctx context.Context) string {
	client, err := o.client()
	if err != nil || o.component == "etcd" {
		return ""
	}
	r, err := o.read(ctx, client, o.node, o.component)
	if err != nil {
		return ""
	}
	return r.version
}

// run makes the change, unless the component is and serves as wanted already.
func (o *operation) run(ctx context.Context, s *steps) error {
	switch {
	case o.original:
		return o.undo(ctx)
	case o.restart:
		return o.exchange(ctx, o.swapper, o.from, o.to, nothingNoted)
	case o.binary == "" && o.gates == nil && maps.Equal(o.wanted, o.recorded.Gates) && o.serving(ctx):
		s.step.Cached("as it is")
		return nil
	}
	_, known := o.record.component(o.node.Name, o.component)
	if !known {
		if err := o.keepOriginal(ctx, o.node, o.swapper.files()); err != nil {
			return fmt.Errorf("keeping what there is, for `podenv node undo`: %w", err)
		}
	}
	var back func()
	err := o.exchange(ctx, o.swapper, o.from, o.to, noted{
		ahead: func() {
			back = o.record.changeComponent(o.node.Name, o.component, componentRecord{Original: o.recorded.Original, Gates: o.wanted})
		},
		back: func() { back() },
	})
	if _, recorded := o.record.component(o.node.Name, o.component); !recorded {
		err = errors.Join(err, o.dropOriginal(context.WithoutCancel(ctx), o.node, o.swapper.files()))
	}
	return err
}

// nothingNoted is for what leaves the record as it is.
var nothingNoted = noted{ahead: func() {}, back: func() {}}

// undo changes to the original, which is not recorded before it is there.
func (o *operation) undo(ctx context.Context) error {
	if err := o.exchange(ctx, o.swapper, o.from, o.to, nothingNoted); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	o.record.forgetComponent(o.node.Name, o.component)
	if err := o.save(ctx); err != nil {
		return err
	}
	return o.dropOriginal(ctx, o.node, o.swapper.files())
}

// serving tells whether the component says of itself what the operation wants.
func (o *operation) serving(ctx context.Context) bool {
	client, err := o.client()
	if err != nil {
		return false
	}
	r, err := o.read(ctx, client, o.node, o.component)
	return err == nil && r.compare(o.component, o.to) == nil
}

// start runs the build that the node has now.
func (o *operation) start(ctx context.Context, args ...string) error {
	if o.component == "kubelet" {
		_, err := o.Exec(ctx, o.node.Name, append([]string{binDir + "kubelet"}, args...)...)
		return err
	}
	pid, err := o.pid(ctx, o.node.Name, o.component)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	_, err = o.Exec(ctx, o.node.Name, append([]string{"/proc/" + pid + "/exe"}, args...)...)
	return err
}

// start runs the build on this machine.
func (b Build) start(ctx context.Context, args ...string) error {
	return run.Command(ctx, b.Binary, args...).Run()
}
