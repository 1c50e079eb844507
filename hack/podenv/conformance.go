package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/htmlreport"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/suite"
)

func newConformance(a *app) *cobra.Command {
	var o conformance.Options
	gates := choose("defaults", "on")
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Run the release's own conformance suite on a cluster with two workers",
		Long: `conformance runs the specs of the conformance suite, unchanged and built from the
series' tree, in the two runs of the conformance programme: in parallel, then those
labelled Serial. It creates a cluster with two workers, loads the images that the specs
run, which podenv builds, and deletes the cluster in the end, also after Ctrl-C, unless
--keep is given. The same command goes on after Ctrl-C, and runs only what has not
passed on the same build. No spec is tried twice in one call; one that failed and passes
in a later call is flaky. e2e.log and junit_01.xml go to _output/conformance/SERIES, or
SERIES-stock, -gates-on or -kubeconfig, a page with the results to _output/report/index.html.

With --kubeconfig it runs on any cluster of the same minor that has two nodes on which
pods can run, as a user who is bound to the ClusterRole cluster-admin. The nodes need the
images: from registry.k8s.io, or from an archive that podenv makes and names, with
ctr --namespace=k8s.io images import. The namespaces that the specs make are deleted.

Exit status: 0, or 1 if a spec failed, or if more than 8 of the suite were left out.`,
		Example: `  podenv conformance
  podenv conformance --stock                    # the release without patches
  podenv conformance --gates on                 # all gates of this branch
  podenv conformance --run parallel --output tsv
  podenv conformance --focus 'ConfigMap.*\[NodeConformance\]'
  podenv conformance --kubeconfig ~/.kube/config`,
		Args: noArgs,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, _ []string) error {
			if _, err := regexp.Compile(o.Focus); err != nil {
				return &usageError{fmt.Errorf("--focus: %w", err)}
			}
			if gates.value == "on" && (a.stock || o.Kubeconfig != "") {
				return &usageError{errors.New("--gates on: only clusters that podenv makes with the patches can have the gates")}
			}
			if o.Procs <= 0 || o.Timeout <= 0 {
				return &usageError{errors.New("--procs and --timeout must be more than 0")}
			}
			if err := checkWords("--run", []string{conformance.Parallel, conformance.Serial}, o.Runs...); err != nil {
				return err
			}
			var rows []conformance.Row
			err := a.reported(func(report *htmlreport.Run) (err error) {
				if rows, err = a.conformance(ctx, p, &o, gates.value); len(rows) == 0 {
					return err
				}
				return errors.Join(err, addRows(report, "conformance", rows, o.GinkgoReport(conformance.Parallel), o.GinkgoReport(conformance.Serial)))
			})
			if len(rows) > 0 { // also if the run ended early
				err = errors.Join(err, writeRows(a, rows, conformance.WriteTable, conformance.WriteTSV))
				fmt.Fprintf(a.errs, "podenv: e2e.log and junit_01.xml are in %s\n", o.Dir)
			}
			if err == nil && slices.ContainsFunc(rows, func(r conformance.Row) bool { return r.State == conformance.Failed }) {
				return errReported
			}
			return err
		}),
	}
	a.outputFlag(cmd)
	a.stockFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&a.name, "name", "conformance", "the cluster's name")
	flags.Var(&gates, "gates", "defaults: those of the release; on: all gates of this branch are on")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "the cluster to run on (default one of its own)")
	flags.StringVar(&o.Focus, "focus", "", "run the specs whose name matches this regular expression, in place of the suite")
	flags.StringSliceVar(&o.Runs, "run", []string{conformance.Parallel, conformance.Serial}, "one of the two runs")
	flags.IntVar(&o.Procs, "procs", e2eProcs, "how many specs of the parallel run run at a time")
	flags.DurationVar(&o.Timeout, "timeout", 6*time.Hour, "how long each of the two runs may take")
	flags.BoolVar(&o.Again, "again", false, "also run what has passed on this build")
	flags.BoolVar(&a.keep, "keep", false, "leave the cluster")
	return cmd
}

// conformance runs the suite on the cluster of --kubeconfig or on a new one.
func (a *app) conformance(ctx context.Context, p *pipeline.Pipeline, o *conformance.Options, gates string) (rows []conformance.Row, err error) {
	name, built := a.series, &pipeline.Result{}
	var c *cluster.Cluster
	if o.Kubeconfig == "" {
		want := cluster.Config{Name: a.name, Workers: 2, Gates: map[string]bool{}}
		if gates == "on" {
			name += "-gates-on"
			want.Gates = nil
		}
		var unlock func()
		if unlock, err = a.lockCluster(); err != nil { // the deferred removal sets err
			return nil, err
		}
		defer unlock()
		p.Temporary = !a.keep
		if built, c, err = a.up(ctx, p, want, ""); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, a.remove(ctx, p.Reporter)) }()
		o.Kubeconfig, o.Cluster = c.Kubeconfig(), built.Image+" gates "+gates
	} else if o.Kubeconfig, err = filepath.Abs(o.Kubeconfig); err != nil { // the specs run in another folder
		return nil, err
	}
	client, err := suite.Connect(ctx, o.Kubeconfig, "")
	if err != nil {
		return nil, err
	}
	if c == nil {
		name += "-kubeconfig"
		if err = o.Check(ctx, client, a.series); err != nil {
			return nil, err
		}
		t, err := p.TreeAsItIs(ctx)
		if err == nil {
			built.Build, err = p.Binaries(ctx, t, pipeline.Host, []string{"kubectl"})
		}
		if err != nil {
			return nil, err
		}
	}
	if a.stock {
		name += "-stock"
	}
	if o.Focus != "" {
		name = filepath.Join(name, "focus")
	}
	specs, images, err := p.Specs(ctx, built.Build)
	if err != nil {
		return nil, err
	}
	o.Dir, o.Specs, o.Kubectl = filepath.Join(a.layout.Output(), "conformance", name), specs, built.Build.Binaries["kubectl"]
	if c == nil {
		fmt.Fprintf(a.errs, "podenv: %s has the images, for nodes that cannot take them from registry.k8s.io\n", images)
	} else if err := loadSpecImages(ctx, p, c, images); err != nil {
		return nil, err
	}
	return conformance.Run(ctx, client, *o, p.Reporter)
}

// lockCluster keeps other calls from the cluster of --name, which they would delete at their end.
func (a *app) lockCluster() (unlock func(), err error) {
	if unlock, err = lockfile.TryLock(filepath.Join(a.layout.Output(), "locks", a.name)); err != nil {
		err = fmt.Errorf("cluster %s: %w; choose another one with --name", a.name, err)
	}
	return unlock, err
}

// loadSpecImages loads the images that the release's own specs run onto the nodes of c.
func loadSpecImages(ctx context.Context, p *pipeline.Pipeline, c *cluster.Cluster, images string) error {
	step := p.Reporter.Step("loading the images of the specs")
	return step.End(c.LoadImages(ctx, []string{images}, step))
}
