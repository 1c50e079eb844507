package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/gate"
	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/source"
)

func newGate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Show the feature gates of a release, and what one of them does",
		Long: `gate works for every gate of a release, of this branch or not, patched or stock. list needs
no cluster. walk makes one of its own.`,
		Example: `  podenv gate list --series v1.37
  podenv gate walk InPlacePodVerticalScaling --stock`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGateList(a), newGateWalk(a))
	return cmd
}

func newGateList(a *app) *cobra.Command {
	var format *string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List each gate: stage, default, who knows it, and the specs that are about it",
		Long: `list prints a line for each feature gate of the release: its stage and default, whether it
is locked, the minor that the release lists it from, how many of the release's own
end-to-end specs have the label FeatureGate:NAME, how many of those can run on a
cluster of podenv and what the others need, and the components that accept the gate.
Stage, default and minor are from the release's own list of gates, which it has from
v1.32 on. For older ones they are from --help of a component, without the gates that
are GA. podenv builds the components and the specs, and starts them for a moment,
without a cluster.`,
		Example: `  podenv gate list --series v1.37
  podenv gate list --stock --output tsv | awk -F '\t' '$4 == "no" && $7 > 0'   # can be tried here
  podenv gate list --output json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write, err := rowWriter(*format, gate.WriteTable, gate.WriteTSV)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			p, err := a.pipeline()
			if err != nil {
				return err
			}
			gates, err := listGates(ctx, p)
			if err != nil {
				return err
			}
			return write(a.out, gates)
		},
	}
	format = outputFlag(cmd)
	a.stockFlag(cmd)
	return cmd
}

// listGates lists the gates of the series, and builds what that needs.
func listGates(ctx context.Context, p *pipeline.Pipeline) ([]gate.Gate, error) {
	if err := p.Packages(ctx); err != nil {
		return nil, err
	}
	tree, err := p.Tree(ctx, source.Options{})
	if err != nil {
		return nil, err
	}
	r, err := p.Binaries(ctx, tree, build.Components)
	if err != nil {
		return nil, err
	}
	specs, err := p.BuildSpecs(ctx, r)
	if err != nil {
		return nil, err
	}
	step := p.Reporter.Step("gates")
	gates, err := gate.List(ctx, r, specs, step)
	return gates, step.End(err)
}

func newGateWalk(a *app) *cobra.Command {
	var format string
	var keep bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "walk GATE",
		Short: "Turn a gate on, off and on again, and answer a Production Readiness Review by what happens",
		Long: `walk tells what any gate of a release does, patched or stock, without code for it. On a
cluster of its own, with the gate on and all APIs served, it runs the release's
end-to-end specs with the label FeatureGate:GATE, and reads from the API server's audit
log which objects they created. It creates these again, in dry runs with the gate on
and off: what differs is what the gate guards. It stores them, turns the gate off and
on in the API server and the kubelets, and says which fields were hidden, refused or
lost, and which containers restarted. Then the specs run again.

The page has the order of the questionnaire in the template of KEPs. A question that
the walk cannot answer says so. The page, the JSON and the JUnit file of the specs go to
_output/gates/SERIES/GATE, also what was found by the time of an error or Ctrl-C.

Exit status: 0, also if specs failed, which the page says.`,
		Example: `  podenv gate walk InPlacePodVerticalScaling
  podenv gate walk SupplementalGroupsPolicy --series v1.37 --stock
  podenv gate walk EnvFiles --output json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{fmt.Errorf("%s takes the name of a gate, got %q: podenv gate list lists them", cmd.CommandPath(), args)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "markdown" && format != "json" {
				return &usageError{fmt.Errorf("--output %q: choose markdown or json", format)}
			}
			w, err := a.walk(cmd.Context(), args[0], keep, timeout)
			if w == nil {
				return err
			}
			if format == "json" {
				return errors.Join(err, jsonout.Write(a.out, w))
			}
			return errors.Join(err, w.WriteMarkdown(a.out, walkCommand(a, w)))
		},
	}
	a.stockFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&a.name, "name", "gate", "the cluster's name")
	flags.StringVarP(&format, "output", "o", "markdown", "markdown or json")
	flags.DurationVar(&timeout, "timeout", 15*time.Minute, "how long the specs may take, each time")
	flags.BoolVar(&keep, "keep", false, "leave the cluster")
	return cmd
}

// walkCommand is the command that makes the walk w.
func walkCommand(a *app, w *gate.Walk) string {
	command := "podenv gate walk " + w.Gate.Name + " --series " + a.series
	if a.stock {
		command += " --stock"
	}
	return command
}

// walk makes a walk with a gate. The walk is also valid with an error, as far as it got.
func (a *app) walk(ctx context.Context, name string, keep bool, timeout time.Duration) (w *gate.Walk, err error) {
	p, err := a.pipeline()
	if err != nil {
		return nil, err
	}
	r, err := p.NodeImage(ctx)
	if err != nil {
		return nil, err
	}
	specs, images, err := p.Specs(ctx, r.Build)
	if err != nil {
		return nil, err
	}
	step := p.Reporter.Step("gates")
	gates, err := gate.List(ctx, r.Build, specs, step)
	if err := step.End(err); err != nil {
		return nil, err
	}
	g, err := gate.Find(gates, name)
	if err != nil {
		return nil, &usageError{err}
	}
	series := a.series
	if a.stock {
		series += "-stock"
	}
	dir := filepath.Join(a.layout.Output(), "gates", series, g.Name)
	want := cluster.Config{Name: a.name, Workers: 2, Gates: map[string]bool{g.Name: true}}
	if want.Kind, err = gate.Kind(dir); err != nil {
		return nil, err
	}
	if err := a.checkInotify(ctx, want); err != nil {
		return nil, err
	}
	if !keep {
		defer func() { err = errors.Join(err, a.down(context.WithoutCancel(ctx), p.Reporter)) }()
	}
	c, err := a.upFrom(ctx, p, r, want)
	if err != nil {
		return nil, err
	}
	o := conformance.Options{
		Dir: dir, Cluster: r.Image + " " + g.Name, Kubeconfig: c.Kubeconfig(),
		Kubectl: r.Build.Binaries["kubectl"], Focus: `\[FeatureGate:` + g.Name + `\]`, Runs: []string{conformance.Parallel, conformance.Serial},
		Procs: e2eProcs, Timeout: timeout, Specs: specs, Again: true, // the audit log has what this cluster's specs create
	}
	step = p.Reporter.Step("loading the images of the specs")
	if err := step.End(c.LoadImages(ctx, []string{images}, step)); err != nil {
		return nil, err
	}
	w = &gate.Walk{Gate: g, Release: r.Build.Version}
	save := func() error {
		data, err := json.MarshalIndent(w, "", "  ")
		if err != nil {
			return err
		}
		var page strings.Builder
		if err := w.WriteMarkdown(&page, walkCommand(a, w)); err != nil {
			return err
		}
		return errors.Join(renameio.WriteFile(filepath.Join(dir, "walk.json"), append(data, '\n'), 0o644),
			renameio.WriteFile(filepath.Join(dir, "walk.md"), []byte(page.String()), 0o644))
	}
	walker := gate.Walker{Cluster: c, Specs: o, Walk: w, Save: save}
	return w, walker.Run(ctx, p.Reporter)
}
