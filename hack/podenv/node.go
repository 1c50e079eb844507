package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/drain"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/node"
)

func newNode(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Operate the cluster's nodes: drain, swap a build, set a gate, restart, undo",
		Long: `node operates one node at a time: the steps of an upgrade, a downgrade and version skew.
An operation returns when the component is healthy and has the requested version and gates
by its own metrics; for etcd, when the node's API server is ready. If it does not come up, or
on Ctrl-C, podenv restores the node. A change that is already in place is not made again.

Components: ` + strings.Join(node.Components, ", ") + `

Gates stay with a component when its build is swapped. A build that does not know a gate
would not start with it and runs without it. The next build that knows it gets it again.

podenv up recreates a cluster whose nodes these operations or podenv push have changed. To
keep the cluster, run podenv node undo first.`,
		Example: `  podenv node list
  podenv node drain podenv-worker --delete-emptydir-data
  podenv node swap podenv-worker kubelet --build stock:v1.32
  podenv node uncordon podenv-worker
  podenv node gate podenv-control-plane kube-apiserver EnvFiles=false
  podenv node undo podenv-worker`,
	}
	cmd.PersistentFlags().StringVar(&a.name, "name", cluster.DefaultName, "the cluster's name")
	return group(cmd, "operation",
		newNodeList(a), newNodeDrain(a), newNodeUncordon(a), newNodeSwap(a), newNodeGate(a), newNodeRestart(a), newNodeUndo(a))
}

// cluster finds the cluster --name. It does not install or start an engine, which the cluster had.
func (a *app) cluster(ctx context.Context) (*cluster.Cluster, error) {
	e, err := engine.Find(ctx)
	if err != nil {
		return nil, err
	}
	return cluster.Find(ctx, a.layout, e, a.name)
}

func (a *app) onCluster(f func(context.Context, *cluster.Cluster, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.cluster(cmd.Context())
		if err != nil {
			return err
		}
		return f(cmd.Context(), c, args)
	}
}

func newNodeList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Print each component's version, and its gates that differ from the default",
		Long: `list prints what each component of each node says of itself: its version, whether a push or
a node operation has changed it, the gates that differ from the build's default, and the
gates asked for that the build does not know. TSV columns: node, its status, component, version, gates,
unknown gates, changed.`,
		Example: `  podenv node list
  podenv node list -o tsv | awk -F '\t' '$3 == "kubelet" {print $1, $4}'`,
		Args: noArgs,
		RunE: a.onCluster(func(ctx context.Context, c *cluster.Cluster, _ []string) error {
			states, err := node.List(ctx, c)
			if err != nil {
				return err
			}
			return writeRows(a, states, node.WriteTable, node.WriteTSV)
		}),
	}
	a.outputFlag(cmd)
	return cmd
}

func newNodeDrain(a *app) *cobra.Command {
	var options drain.Helper
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Cordon a node and evict its pods, as kubectl drain does",
		Long: `drain works as kubectl drain does, with its flags. If a pod cannot be evicted, or on
Ctrl-C, a node that took pods before takes pods again. podenv node uncordon ends the drain.`,
		Example: `  podenv node drain podenv-worker --delete-emptydir-data --force`,
		Args:    takes(1, "a node"),
		RunE: a.onCluster(func(ctx context.Context, c *cluster.Cluster, args []string) error {
			return node.Drain(ctx, c, args[0], options, a.reporter())
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&options.Force, "force", false, "also delete pods that no controller recreates")
	flags.BoolVar(&options.DeleteEmptyDirData, "delete-emptydir-data", false, "also delete pods with emptyDir volumes, and what is in these")
	flags.BoolVar(&options.IgnoreAllDaemonSets, "ignore-daemonsets", true, "leave pods of daemon sets, such as kube-proxy, where they are")
	flags.IntVar(&options.GracePeriodSeconds, "grace-period", -1, "how many seconds a pod has to end; negative for the pod's own time")
	flags.DurationVar(&options.Timeout, "timeout", 5*time.Minute, "how long it may take; 0 for ever")
	return cmd
}

func newNodeUncordon(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "uncordon NODE",
		Short:   "Let a node take pods again",
		Example: `  podenv node uncordon podenv-worker`,
		Args:    takes(1, "a node"),
		RunE: a.onCluster(func(ctx context.Context, c *cluster.Cluster, args []string) error {
			return node.Uncordon(ctx, c, args[0], a.reporter())
		}),
	}
}

func newNodeSwap(a *app) *cobra.Command {
	var build string
	var gates []string
	var changes map[string]*bool
	cmd := &cobra.Command{
		Use:   "swap NODE COMPONENT --build BUILD",
		Short: "Make a node run another build of a component",
		Long: `swap runs another build of one component on the node. If the build does not exist yet,
swap makes it. --build is one of:

  stock:MINOR    the release of a series without patches, such as stock:v1.32
  patched:MINOR  the series' tree as it is, edits included, such as patched:v1.33
  PATH           an executable`,
		Example: `  podenv node swap podenv-worker kubelet --build stock:v1.32
  podenv node swap podenv-control-plane kube-apiserver --build patched:v1.33 --gates EnvFiles=true`,
		Args: cobra.MatchAll(takesComponent(node.Components...), func(*cobra.Command, []string) (err error) {
			if build == "" {
				return &usageError{fmt.Errorf("--build is missing: give stock:MINOR, patched:MINOR or the path of an executable")}
			}
			if changes, err = node.ParseGateChanges(gates); err != nil {
				return &usageError{err}
			}
			return nil
		}),
		RunE: a.onCluster(func(ctx context.Context, c *cluster.Cluster, args []string) error {
			// Fail before minutes of compiling.
			if err := node.CheckRuns(ctx, c, args[0], args[1]); err != nil {
				return err
			}
			p, err := a.pipeline()
			if err != nil {
				return err
			}
			b, err := p.Component(ctx, build, args[1])
			if err != nil {
				return err
			}
			return a.printed(node.Swap(ctx, c, args[0], b, changes, p.Reporter))
		}),
	}
	cmd.Flags().StringVar(&build, "build", "", "stock:MINOR, patched:MINOR or the path of an executable")
	cmd.Flags().StringSliceVar(&gates, "gates", nil, "gates to change with the same restart, as podenv node gate takes them")
	return cmd
}

func newNodeGate(a *app) *cobra.Command {
	var changes map[string]*bool
	return &cobra.Command{
		Use:   "gate NODE COMPONENT GATE=true|GATE=false|GATE-...",
		Short: "Set feature gates of a component of a node",
		Long: `gate sets feature gates. A dash at the end removes the setting, so that the build's default
applies. Other gates stay as they are.`,
		Example: `  podenv node gate podenv-worker kubelet EnvFiles=false
  podenv node gate podenv-control-plane kube-apiserver EnvFiles=true VariableExpansionEvents-`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) < 3 {
				return &usageError{fmt.Errorf("%s takes a node, a component and gates, got %q: see %[1]s --help", cmd.CommandPath(), args)}
			}
			if changes, err = node.ParseGateChanges(args[2:]); err != nil {
				return &usageError{err}
			}
			return checkWords(unknownComponent, node.Components, args[1])
		},
		RunE: a.onCluster(func(ctx context.Context, c *cluster.Cluster, args []string) error {
			return a.printed(node.SetGates(ctx, c, args[0], args[1], changes, a.reporter()))
		}),
	}
}

func newNodeRestart(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restart NODE COMPONENT",
		Short: "Restart a component of a node, and wait until it serves",
		Example: `  podenv node restart podenv-worker kubelet
  podenv node restart podenv-control-plane etcd`,
		Args: takesComponent(append(slices.Clone(node.Components), "etcd")...),
		RunE: a.onCluster(func(ctx context.Context, c *cluster.Cluster, args []string) error {
			_, err := node.Restart(ctx, c, args[0], args[1], a.reporter())
			return err
		}),
	}
}

func newNodeUndo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "undo NODE",
		Short: "Restore a node to what it was before all operations on it",
		Long: `undo restores the builds and the configuration of the node's components, also after podenv
push, and uncordons the node if podenv node has drained it. It restores kube-proxy on all
nodes. Evicted pods do not come back.`,
		Example: `  podenv node undo podenv-worker`,
		Args:    takes(1, "a node"),
		RunE: a.onCluster(func(ctx context.Context, c *cluster.Cluster, args []string) error {
			undone, changed, err := node.Undo(ctx, c, args[0], a.reporter())
			for _, c := range undone {
				a.printed(c, nil) //nolint:errcheck // it is nil
			}
			if err == nil && !changed {
				fmt.Fprintf(a.out, "%s is as it was made: there is nothing to undo\n", args[0])
			}
			return err
		}),
	}
}

// printed prints what an operation has changed, unless it has failed, and returns its error.
func (a *app) printed(c node.Changed, err error) error {
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s %s %s\n", c.Node, c.Component, c.Version)
	if len(c.LeftOut) > 0 {
		fmt.Fprintf(a.out, "  without the gates that it does not know: %s\n", strings.Join(c.LeftOut, ", "))
	}
	return nil
}

// takesComponent accepts a node and one of components.
func takesComponent(components ...string) cobra.PositionalArgs {
	return cobra.MatchAll(takes(2, "a node and a component"), func(_ *cobra.Command, args []string) error {
		return checkWords(unknownComponent, components, args[1])
	})
}
