package main

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// app has what all verbs share.
type app struct {
	out, errs io.Writer

	series string // --series
	name   string // --name
	plain  bool   // --plain
	stock  bool   // --stock
	fixes  string // --with of compare: see series.FindFixes

	layout layout.Layout
}

const defaultSeries = "v1.33"

func newRoot(out, errs io.Writer) *cobra.Command { return newRootOf(&app{out: out, errs: errs}) }

func newRootOf(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "podenv",
		Short: "Build, run and test a Kubernetes with this branch's pod-environment features",
		Long: `podenv takes a Kubernetes release, applies this branch's patches, builds it, and
runs it as a kind cluster with the feature gates on. Each step is a verb of its
own; up joins them.

You work in trees/, the assembled sources. Everything else goes under _output, which is
safe to delete. A step whose inputs have not changed costs nothing.`,
		Example: `  podenv doctor                     # can this host do it?
  podenv up                         # from a release tag to a running cluster
  podenv push kubelet               # after an edit in the tree: onto the nodes
  podenv e2e --focus 'story 1'      # run specs on the cluster
  podenv down                       # and leave nothing behind`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown verb %q: see podenv --help", args[0])}
			}
			return nil
		},
	}
	root.SetOut(a.out)
	root.SetErr(a.errs)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&a.series, "series", cmp.Or(os.Getenv("SERIES"), defaultSeries), "the Kubernetes minor whose patches to use; SERIES sets the default")
	flags.BoolVar(&a.plain, "plain", false, "print plain lines, as without a terminal")

	root.AddCommand(
		newDoctor(a), newTree(a), newPatches(a), newBuild(a), newImage(a), newUp(a),
		newDown(a), newPush(a), newE2E(a), newCompare(a), newConformance(a), newExport(a), newTest(a), newReport(a), newBench(a),
		newTekton(a), newRebase(a), newSeries(a), newGate(a), newFuzz(a), newNode(a), newClean(a), newPackages(a), newPublish(a), newVerify(a),
	)
	return root
}

// prepare checks --name and finds the checkout.
func (a *app) prepare(cmd *cobra.Command) (err error) {
	// Verbs share the variable, which has the default of the verb that was added last.
	if name := cmd.Flags().Lookup("name"); name != nil && !name.Changed {
		a.name = name.DefValue
	}
	if a.name != "" {
		if err := cluster.ValidateName(a.name); err != nil {
			return &usageError{fmt.Errorf("--name: %w", err)}
		}
	}
	if a.layout, err = layout.Find("."); err != nil {
		return err
	}
	return a.layout.MoveTrees()
}

// nameFlag adds --name to a verb that operates on a cluster.
func (a *app) nameFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.name, "name", cluster.DefaultName, "the cluster's name")
}

// stockFlag adds --stock, which leaves the patches out.
func (a *app) stockFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.stock, "stock", false, "the release without patches")
}

// reporter shows progress on standard error, so that output can be piped.
func (a *app) reporter() *progress.Reporter {
	return progress.To(a.errs, a.plain, a.layout.Logs())
}

// pipeline returns the pipeline of the series --series.
func (a *app) pipeline() (*pipeline.Pipeline, error) {
	s, err := series.Load(a.layout, a.series)
	if err != nil {
		return nil, err
	}
	if err := a.printIncomplete(s); err != nil {
		return nil, err
	}
	return &pipeline.Pipeline{Layout: a.layout, Series: s, Reporter: a.reporter(), Stock: a.stock}, nil
}

// outputFlag adds --output to a verb that lists rows.
func outputFlag(cmd *cobra.Command) *string {
	return cmd.Flags().StringP("output", "o", "table", "table, tsv or json")
}

// rowWriter returns the function that writes rows in the format of --output.
func rowWriter[T any](format string, table, tsv func(io.Writer, []T) error) (func(io.Writer, []T) error, error) {
	switch format {
	case "table":
		return table, nil
	case "tsv":
		return tsv, nil
	case "json":
		return jsonout.WriteList[T], nil
	}
	return nil, &usageError{fmt.Errorf("--output %q: choose table, tsv or json", format)}
}

// noArgs is cobra.NoArgs with a usageError.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no arguments, got %q: see %[1]s --help", cmd.CommandPath(), args)}
	}
	return nil
}
