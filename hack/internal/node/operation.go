package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
)

const (
	serveTimeout = time.Minute // that most components may take to serve after a change
	logLines     = "15"        // that an error shows of the log of a component that does not serve
)

// change is a change of a component. Its zero value restarts the component.
type change struct {
	binary   string          // file with the new build; empty to keep the build
	image    string          // image archive with the new build, for components that run as pods
	gates    map[string]bool // the only gates to set; nil to keep the gates
	original bool            // restore the state before the first operation; the rest is ignored
}

// instance is a component on one node, and what an operation does to it.
type instance struct {
	component
	target *target
	change
	from, to cluster.State
	// recorded is the instance's change in the record, or its current state if it has none.
	recorded cluster.ComponentChange
	wanted   map[string]bool // requested gates, including those that the build does not know
	leftOut  []string
	restart  bool // even if nothing differs; a restart is not recorded
}

// plan decides what an instance becomes.
type plan func(context.Context, *instance) error

// operation changes one component on one or more nodes: on all of them or on none.
type operation struct {
	cluster   recorder
	component string
	instances []*instance
	steps     *steps
	// before, during and after are the records for these phases.
	before, during, after cluster.Changes
}

// recorder is the part of cluster.Cluster that records changes.
type recorder interface {
	Name() string
	SaveChanges(context.Context, cluster.Changes) error
}

func operate(ctx context.Context, c *cluster.Cluster, component string, nodes []string, prefix string, r *progress.Reporter, p plan) ([]Changed, error) {
	s := &steps{reporter: r, prefix: prefix + ": "}
	s.next(nil, "looking at %s", component)
	changed, err := func() ([]Changed, error) {
		unlock, err := c.Lock(ctx, s.step)
		if err != nil {
			return nil, err
		}
		defer unlock()
		o := &operation{cluster: c, component: component, steps: s}
		if err := o.inspect(ctx, c, nodes, p); err != nil {
			return nil, err
		}
		var changed []Changed // includes the instances that do not have to change
		for _, i := range o.instances {
			changed = append(changed, Changed{Node: i.target.node, Component: component, Version: i.to.Version, LeftOut: i.leftOut})
		}
		if err := o.run(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", component, err)
		}
		return changed, nil
	}()
	return changed, s.step.End(err)
}

// inspect reads the component's state on each node, and plans its change.
func (o *operation) inspect(ctx context.Context, c *cluster.Cluster, nodes []string, p plan) (err error) {
	if o.before, err = c.Changes(ctx); err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	clusterNodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		n, err := findNode(clusterNodes, node, c.Name())
		if err == nil {
			err = checkRuns(n, o.component)
		}
		if err != nil {
			return err
		}
		t := &target{Cluster: c, client: client, node: node, name: o.component, step: o.steps.step}
		i := &instance{target: t}
		if i.component, err = t.component(); err != nil {
			return err
		}
		o.instances = append(o.instances, i)
	}
	return each(ctx, o.instances, func(ctx context.Context, i *instance) error { return o.plan(ctx, i, p) })
}

func (o *operation) plan(ctx context.Context, i *instance, p plan) (err error) {
	var known bool
	i.recorded, known = o.before[i.target.node].Components[o.component]
	// What runs before the first change is what undo restores. A kubelet that was changed may be starting it.
	err = poll.Until(ctx, i.target.serveTimeout(), func(ctx context.Context) error {
		if i.from, err = i.state(ctx); err != nil || known || i.from.SHA256 != "" {
			return poll.Stop(err)
		}
		return fmt.Errorf("%s does not run, so that podenv could not undo the change: see why with journalctl --unit=kubelet on the node", o.component)
	})
	if err != nil {
		return err
	}
	if !known {
		i.recorded = cluster.ComponentChange{Original: i.from, Gates: i.from.Gates}
	}
	i.wanted = i.recorded.Gates
	if err := p(ctx, i); err != nil {
		return err
	}
	original := i.recorded.Original
	if known && i.differs() && !i.restart && i.to.SHA256 == original.SHA256 && maps.Equal(i.wanted, original.Gates) {
		i.change, i.to = change{original: true}, original // as undo does it
	}
	return nil
}

// run makes the change on all instances, or reverts it.
func (o *operation) run(ctx context.Context) error {
	o.instances = slices.DeleteFunc(o.instances, func(i *instance) bool { return !i.differs() && i.isServing(ctx) })
	if len(o.instances) == 0 {
		o.steps.step.Cached("as it is")
		return nil
	}
	o.record()
	o.steps.next(nil, "%s", o.preparing())
	if err := o.prepare(ctx); err != nil {
		return errors.Join(err, o.cleanUp(context.WithoutCancel(ctx), o.before))
	}
	applied, err := o.inTurns(ctx, o.instances,
		func(ctx context.Context, i *instance) error { return i.apply(ctx) },
		func(ctx context.Context, i *instance) error { return i.waitServing(ctx, i.to) })
	if err != nil {
		return o.revert(ctx, applied, err)
	}
	// The change is made: it is too late for an interrupt.
	return o.end(context.WithoutCancel(ctx), o.after)
}

// inTurns applies a change to one control plane after another, so that an API server and most
// members of etcd serve, and to other nodes at once. It returns the instances that it has reached.
func (o *operation) inTurns(ctx context.Context, instances []*instance, apply, wait func(context.Context, *instance) error) (reached []*instance, err error) {
	size, what := len(instances), o.component
	if !slices.Contains(onEveryNode, o.component) {
		size = 1
	}
	for turn := range slices.Chunk(instances, max(1, size)) {
		if len(turn) < len(instances) {
			what = o.component + " on " + turn[0].target.node
		}
		reached = append(reached, turn...)
		o.steps.next(nil, "restarting %s", what)
		if err = each(ctx, turn, apply); err == nil {
			o.steps.next(nil, "waiting for %s to serve", what)
			err = each(ctx, turn, wait)
		}
		if err != nil {
			return reached, err
		}
	}
	return reached, nil
}

// differs says whether the plan changes the instance, whatever it reports in its metrics.
func (i *instance) differs() bool {
	return i.original || i.restart || i.binary != "" || i.gates != nil || !maps.Equal(i.wanted, i.recorded.Gates)
}

// record sets the records for the phases. A node that a killed run leaves with a mix of builds
// must not look unchanged, so that undo can restore it.
func (o *operation) record() {
	o.during, o.after = o.before, o.before
	for _, i := range o.instances {
		node := i.target.node
		switch {
		case i.original:
			o.after = o.after.With(node, o.component, nil)
		case !i.restart:
			recorded := &cluster.ComponentChange{Original: i.recorded.Original, Gates: i.wanted}
			o.during = o.during.With(node, o.component, recorded)
			o.after = o.after.With(node, o.component, recorded)
		}
	}
}

// prepare keeps the originals, stages the change and records it. It does not affect what runs.
func (o *operation) prepare(ctx context.Context) error {
	err := each(ctx, o.instances, func(ctx context.Context, i *instance) error {
		_, before := o.before[i.target.node].Components[o.component]
		if _, during := o.during[i.target.node].Components[o.component]; during && !before {
			for _, file := range i.files() {
				if err := i.target.link(ctx, file, copyPath(file, originalSuffix)); err != nil {
					return fmt.Errorf("keeping the original for `podenv node undo`: %w", err)
				}
			}
		}
		return i.stage(ctx, i.change, i.to)
	})
	if err != nil {
		return err
	}
	return o.cluster.SaveChanges(ctx, o.during)
}

// end records changes, which the instances have now, and cleans up.
func (o *operation) end(ctx context.Context, changes cluster.Changes) error {
	return errors.Join(o.cluster.SaveChanges(ctx, changes), o.cleanUp(ctx, changes))
}

// cleanUp removes what the operation left on the nodes, and the originals of instances that are not in changes.
func (o *operation) cleanUp(ctx context.Context, changes cluster.Changes) error {
	return each(ctx, o.instances, func(ctx context.Context, i *instance) error {
		suffixes := []string{newSuffix, oldSuffix}
		if _, changed := changes[i.target.node].Components[o.component]; !changed {
			suffixes = append(suffixes, originalSuffix)
		}
		return errors.Join(i.target.removeCopies(ctx, i.files(), suffixes...), i.cleanUp(ctx))
	})
}

func (o *operation) preparing() string {
	switch i := o.instances[0]; {
	case i.binary != "" && len(o.instances) == 1:
		return "copying " + o.component
	case i.binary != "":
		return fmt.Sprintf("copying %s to %d nodes", o.component, len(o.instances))
	case i.gates != nil:
		return "writing the gates of " + o.component
	}
	return "preparing " + o.component
}

// revert reverts the change of the instances applied after err, and adds to err what the component logged.
func (o *operation) revert(ctx context.Context, applied []*instance, err error) error {
	if ctx.Err() == nil {
		failed := o.instances[0]
		if at, ok := errors.AsType[*instanceError](err); ok {
			failed = at.instance
		}
		if log := failed.log(ctx); log != "" {
			err = fmt.Errorf("%w\nlast lines of its log on %s:\n  %s", err, failed.target.node, strings.ReplaceAll(log, "\n", "\n  "))
		}
	}
	o.steps.next(err, "putting the old %s back", o.component)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(1+len(applied))*o.instances[0].target.serveTimeout())
	defer cancel()
	slices.Reverse(applied) // the one that failed first
	_, failed := o.inTurns(ctx, applied,
		func(ctx context.Context, i *instance) error { return i.revert(ctx) },
		func(ctx context.Context, i *instance) error { return i.waitServing(ctx, i.from) })
	if failed != nil {
		return fmt.Errorf("%w\nthe previous state could not be restored either: recreate the cluster with `podenv up --recreate --name %s`: %w", err, o.cluster.Name(), failed)
	}
	o.steps.step.End(nil) //nolint:errcheck // the revert has succeeded, the operation has not
	if failed := o.end(ctx, o.before); failed != nil {
		return errors.Join(err, failed)
	}
	what := map[bool]string{true: "configuration", false: "build"}[o.instances[0].binary == ""]
	return fmt.Errorf("%w\nthe old %s is back and serves: fix the new one and try again", err, what)
}

type instanceError struct {
	instance *instance
	err      error
}

func (e *instanceError) Error() string {
	return fmt.Sprintf("node %s: %v", e.instance.target.node, e.err)
}
func (e *instanceError) Unwrap() error { return e.err }

// each runs f for instances in parallel.
func each(ctx context.Context, instances []*instance, f func(context.Context, *instance) error) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, i := range instances {
		g.Go(func() error {
			if err := f(gctx, i); err != nil {
				return &instanceError{i, err}
			}
			return nil
		})
	}
	return g.Wait()
}

// steps shows the phases of an operation, each as a step with its time.
type steps struct {
	reporter *progress.Reporter
	prefix   string
	step     *progress.Step
}

// next ends the current step with err, and starts another.
func (s *steps) next(err error, format string, args ...any) {
	s.step.End(err) //nolint:errcheck // the operation's error has it
	s.step = s.reporter.Step(s.prefix + fmt.Sprintf(format, args...))
}
