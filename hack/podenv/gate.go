package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/gate"
	"podenv.dev/hack/internal/htmlreport"
	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
)

func newGate(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "gate",
		Short: "Show the feature gates of a release, and what one of them does",
		Long: `gate works for every gate of a release, of this branch or not, patched or stock. list needs
no cluster. walk makes one of its own.`,
		Example: `  podenv gate list --series v1.37
  podenv gate walk InPlacePodVerticalScaling --stock`,
	}, "verb", newGateList(a), newGateWalk(a))
}

func newGateList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List each gate: stage, default, who knows it, and the specs that are about it",
		Long: `list prints a line for each feature gate of the release. SINCE is the minor that the
release lists it from, SPECS the number of the release's own end-to-end specs with the
label FeatureGate:NAME, CAN RUN how many of these can run on a cluster of podenv.
Releases before v1.32 have no list of gates: then they are those in --help of a
component, which has none that are GA. No cluster is needed.`,
		Example: `  podenv gate list --series v1.37
  podenv gate list --stock --output tsv | awk -F '\t' '$4 == "no" && $7 > 0'   # can be tried here
  podenv gate list --output json`,
		Args: noArgs,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, _ []string) error {
			tree, err := p.Tree(ctx, source.Options{})
			if err != nil {
				return err
			}
			r, err := p.Binaries(ctx, tree, pipeline.Host, build.Components)
			if err != nil {
				return err
			}
			specs, err := p.BuildSpecs(ctx, r)
			if err != nil {
				return err
			}
			step := p.Reporter.Step("gates")
			gates, err := gate.List(ctx, r, specs, step)
			if err := step.End(err); err != nil {
				return err
			}
			return writeColumns(a, gate.Columns, gates, gate.Gate.Fields)
		}),
	}
	a.outputFlag(cmd)
	a.stockFlag(cmd)
	return cmd
}

func newGateWalk(a *app) *cobra.Command {
	format := choose("markdown", "json")
	var all bool
	var older []string
	var timeout, limit time.Duration
	cmd := &cobra.Command{
		Use:   "walk GATE | --all",
		Short: "Turn a gate on, off and on again, and answer a Production Readiness Review by what happens",
		Long: `walk tells what any gate of a release does, patched or stock, without code for it. On a
cluster of its own it runs the release's end-to-end specs with the label
FeatureGate:GATE, and creates their objects again with the gate on and off, on two API
servers that disagree about it, with kubelets of older minors, and under the minor
before. The page answers the questionnaire in the template of KEPs. A question that the
walk cannot answer says so. docs/gates.md has what is compared.

The page, the JSON and the JUnit files of the specs go to _output/gates/SERIES/GATE, also
what was found by the time of an error or Ctrl-C, and to _output/report/index.html.

With --all, each alpha and beta gate that is not locked and has specs that can run is
walked, for at most --limit, and a table is printed with a row for each, also for those
that have none. What an earlier call has completed on the same builds is not repeated.

Exit status: 0, also if specs failed, which the page says.`,
		Example: `  podenv gate walk InPlacePodVerticalScaling
  podenv gate walk PodLevelResources --series v1.37 --stock
  podenv gate walk EnvFiles --older v1.30,v1.31,v1.32 --output json
  podenv gate walk --all --series v1.37 --stock > table.md`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || all == (len(args) == 1) {
				return &usageError{fmt.Errorf("%s takes the name of a gate, or --all, got %q: podenv gate list lists them", cmd.CommandPath(), args)}
			}
			return nil
		},
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, args []string) error {
			var walks []*gate.Walk
			err := a.reported(func(report *htmlreport.Run) (err error) {
				walks, err = a.walks(ctx, p, args, older, timeout, limit)
				for _, w := range walks {
					err = errors.Join(err, addRows(report, w.Gate.Name+" on", w.On), addRows(report, w.Gate.Name+" on again, after it was off", w.Again))
					report.Texts = append(report.Texts, htmlreport.Text{Title: "What the walk found about " + w.Gate.Name, Text: w.Markdown()})
				}
				return err
			})
			switch {
			case walks == nil:
				return err
			case all && format.value == "json":
				return errors.Join(err, jsonout.Write(a.out, walks))
			case all:
				return errors.Join(err, gate.WriteMarkdownTable(a.out, walks))
			case format.value == "json":
				return errors.Join(err, jsonout.Write(a.out, walks[0]))
			}
			_, failed := io.WriteString(a.out, walks[0].Markdown())
			return errors.Join(err, failed)
		}),
	}
	a.stockFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&a.name, "name", "gate", "the cluster's name")
	flags.VarP(&format, "output", "o", "markdown or json")
	flags.DurationVar(&timeout, "timeout", 15*time.Minute, "how long the specs may take, each time; with --all at most a third of --limit")
	flags.DurationVar(&limit, "limit", 15*time.Minute, "with --all, how long the walk of one gate may take")
	flags.StringSliceVar(&older, "older", nil, "minors of the older kubelets (default the three before, with --all the one before)")
	flags.BoolVar(&a.keep, "keep", false, "leave the cluster")
	flags.BoolVar(&all, "all", false, "walk all gates that can be walked")
	return cmd
}

// walks makes a walk with the gate called names[0] or, without a name, with each gate, each for at most limit.
// The walks are also valid with an error, as far as they got.
func (a *app) walks(ctx context.Context, p *pipeline.Pipeline, names, minors []string, timeout, limit time.Duration) (walks []*gate.Walk, err error) {
	unlock, err := a.lockCluster()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if len(names) > 0 && len(minors) == 0 { // --all has the time for one
		minors = p.Series.Older(a.layout, series.SupportedSkew)
	}
	if minors, err = olderMinors(a.layout, p.Series, minors); err != nil {
		return nil, err
	}
	flags := " --series " + a.series + " --older=" + strings.Join(minors, ",")
	if a.stock {
		flags += " --stock"
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
	var found gate.Gate
	if len(names) > 0 {
		if found, err = gate.Find(gates, names[0]); err != nil {
			return nil, &usageError{err}
		}
	} else {
		timeout = min(timeout, limit/3) // one spec that hangs does not take the time of all parts
	}
	build := r.Image + " " + specs.Key
	stock := func(minor, component string) (b node.Build) {
		if err == nil {
			b, err = p.Component(ctx, "stock:"+minor, component)
			build += " " + b.SHA256
		}
		return b
	}
	var older, before []node.Build
	for _, minor := range slices.Backward(minors) {
		older = append(older, stock(minor, "kubelet"))
	}
	for _, minor := range p.Series.Older(a.layout, 1) {
		before = []node.Build{stock(minor, "kubelet"), stock(minor, "kube-apiserver")}
	}
	if err != nil {
		return nil, err
	}
	dirs := filepath.Join(a.layout.Output(), "gates", filepath.Base(r.Build.Tree.Dir))
	walk := func(ctx context.Context, g gate.Gate) (*gate.Walk, error) {
		dir := filepath.Join(dirs, g.Name)
		w := &gate.Walk{Gate: g, Release: r.Build.Version, Build: build, Command: "podenv gate walk " + g.Name + flags}
		walker := gate.Walker{Walk: w, Minor: a.series, Older: older, Before: before, Save: func() error { return w.Save(dir) }, Specs: conformance.Options{
			Dir: dir, Kubectl: r.Build.Binaries["kubectl"], Focus: `\[FeatureGate:` + g.Name + `\]`, Runs: []string{conformance.Parallel, conformance.Serial},
			Cluster: r.Image + " " + g.Name, Procs: e2eProcs, Timeout: timeout, Specs: specs, Again: true, // the audit log has what this cluster's specs create
		}}
		err := w.Depends(ctx, r.Build.Binaries["kube-apiserver"])
		if walker.Specs.Skip = w.Others(gates); err == nil {
			err = a.walk(ctx, p, r, images, &walker)
		}
		return w, w.End(ctx, dir, err)
	}
	if len(names) > 0 {
		w, err := walk(ctx, found)
		return []*gate.Walk{w}, err
	}
	return gate.WalkAll(ctx, a.series, gates, limit, func(ctx context.Context, g gate.Gate, has bool) (*gate.Walk, error) {
		if w := gate.Load(filepath.Join(dirs, g.Name), build, limit); w != nil {
			return w, nil
		}
		if !has {
			return &gate.Walk{Gate: g, Release: r.Build.Version}, nil
		}
		return walk(ctx, g)
	})
}

// walk makes a walk on a cluster of its own.
func (a *app) walk(ctx context.Context, p *pipeline.Pipeline, r *pipeline.Result, images string, walker *gate.Walker) (err error) {
	want := cluster.Config{Name: a.name, Workers: 2, Gates: map[string]bool{walker.Walk.Gate.Name: true}}
	for _, needed := range walker.Walk.Needs {
		want.Gates[needed] = true
	}
	if want.Kind, err = gate.Kind(walker.Specs.Dir); err != nil {
		return err
	}
	if err := a.checkInotify(ctx, want); err != nil {
		return err
	}
	p.Temporary = !a.keep
	c, err := p.Cluster(ctx, r, want)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.remove(ctx, p.Reporter)) }()
	if err := loadSpecImages(ctx, p, c, images); err != nil {
		return err
	}
	walker.Cluster, walker.Specs.Kubeconfig, walker.Keep = c, c.Kubeconfig(), a.keep
	return walker.Run(ctx, p.Reporter)
}
