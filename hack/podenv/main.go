// Command podenv builds, runs and tests a Kubernetes with this branch's features.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/interrupt"
	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/series"
)

func main() { os.Exit(Main()) }

// Main runs the command line and returns its exit status: 0, 1 for a failure,
// 2 for a wrong command line, 130 after Ctrl-C.
func Main() int {
	ctx, stop := interrupt.Context(context.Background())
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends the process at once
	err := newRoot(&app{out: os.Stdout, errs: os.Stderr}).ExecuteContext(ctx)
	var usage *usageError
	var write *fs.PathError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &write) && write.Path == os.Stdout.Name() && errors.Is(err, syscall.EPIPE):
		return 1 // podenv series | head
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "podenv: interrupted; the same command does what is not done yet")
		return 130 // 128 + SIGINT, as in shells
	case errors.As(err, &usage), errors.Is(err, series.ErrUnknown):
		fmt.Fprintf(os.Stderr, "podenv: %v\n", err)
		return 2
	case errors.Is(err, errReported):
		return 1
	default:
		// A full disk or a port in use can end any step: Explain adds what to do.
		fmt.Fprintf(os.Stderr, "podenv: %v\n", remedy.Explain(err))
		return 1
	}
}

// errReported ends a verb that has already printed what is wrong.
var errReported = errors.New("already reported")

// usageError is an error in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// app has what all verbs share.
type app struct {
	out, errs io.Writer

	series string // --series
	name   string // --name
	plain  bool   // --plain
	stock  bool   // --stock
	keep   bool   // --keep of the verbs that make a cluster for themselves
	output choice // --output of the verbs that list rows

	layout layout.Layout
}

const defaultSeries = "v1.33"

func newRoot(a *app) *cobra.Command {
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

	return group(root, "verb",
		newDoctor(a), newTree(a), newPatches(a), newBuild(a), newImage(a), newUp(a),
		newDown(a), newPush(a), newE2E(a), newCompare(a), newConformance(a), newExport(a), newTest(a), newReport(a), newBench(a),
		newTekton(a), newRebase(a), newSeries(a), newGate(a), newFuzz(a), newNode(a), newClean(a), newPackages(a), newPublish(a), newVerify(a),
	)
}

// group adds verbs to cmd, which prints its help, and refuses what is none of them.
func group(cmd *cobra.Command, what string, verbs ...*cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return &usageError{fmt.Errorf("unknown %s %q: see %s --help", what, args[0], cmd.CommandPath())}
		}
		return nil
	}
	cmd.AddCommand(verbs...)
	return cmd
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
	return a.layout.CheckOutput()
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
	return &pipeline.Pipeline{Layout: a.layout, Series: s, Reporter: a.reporter(), Stock: a.stock}, nil
}

// onSeries runs f with the pipeline of the series --series.
func (a *app) onSeries(f func(context.Context, *pipeline.Pipeline, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		p, err := a.pipeline()
		if err != nil {
			return err
		}
		return f(cmd.Context(), p, args)
	}
}

// choice is the value of a flag that is one of a few words, the first by default.
type choice struct {
	words []string
	value string
}

func choose(words ...string) choice { return choice{words, words[0]} }

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "string" }

// Set is called with the value on the command line. pflag names the flag in the error.
func (c *choice) Set(value string) error {
	if !slices.Contains(c.words, value) {
		return fmt.Errorf("choose from %s", strings.Join(c.words, ", "))
	}
	c.value = value
	return nil
}

// outputFlag adds --output to a verb that lists rows.
func (a *app) outputFlag(cmd *cobra.Command) {
	a.output = choose("table", "tsv", "json")
	cmd.Flags().VarP(&a.output, "output", "o", "table, tsv or json")
}

// writeRows writes rows in the format of --output.
func writeRows[T any](a *app, rows []T, table, tsv func(io.Writer, []T) error) error {
	switch a.output.value {
	case "tsv":
		return tsv(a.out, rows)
	case "json":
		return jsonout.WriteList(a.out, rows)
	}
	return table(a.out, rows)
}

// writeColumns is writeRows for rows whose table has the columns of the TSV, below a heading.
func writeColumns[T any](a *app, heading string, rows []T, fields func(T) []any) error {
	return writeRows(a, rows,
		func(w io.Writer, rows []T) error { return jsonout.WriteTable(w, heading, rows, fields) },
		func(w io.Writer, rows []T) error { return jsonout.WriteTSV(w, rows, fields) })
}

// checkWords refuses values of a flag or arguments that are not known. The error begins with what.
func checkWords(what string, known []string, values ...string) error {
	for _, value := range values {
		if !slices.Contains(known, value) {
			return &usageError{fmt.Errorf("%s %q: choose from %s", what, value, strings.Join(known, ", "))}
		}
	}
	return nil
}

// takes accepts n arguments. what says what they are.
func takes(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return &usageError{fmt.Errorf("%s takes %s, got %q: see %[1]s --help", cmd.CommandPath(), what, args)}
		}
		return nil
	}
}

var noArgs = takes(0, "no arguments")
