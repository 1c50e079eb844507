package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/bench"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/source"
)

func newBench(a *app) *cobra.Command {
	b := &benchRun{app: a}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure: env files, names and expansion beside upstream's, the kubelet, pods, the harness",
		Long: `bench measures and prints tables, and last what was asked of the numbers beside
what was reached. It is about relations: no number of them is a failure.

Groups for --only, of which the first four are the default:

  envfile    the reader of env files beside upstream's, joho/godotenv, compose-go's
             and os.ReadFile, all on the same files (test/bench)
  names      the rules for names of variables beside upstream's, which for strict
             names is a regular expression (test/bench)
  expansion  $(NAME) in strings beside upstream's Expand, on the cases of its tests
             and on text without references (test/bench)
  kubelet    makeEnvironmentVariables in the tree, compiled as it is, your edits
             included: fileKeyRefs beside literal values
  cluster    pods with fileKeyRef beside the same with literal values and with a
             ConfigMap: start latency and API requests. On the cluster called
             --name; without one, on one that is made for it and deleted after
  harness    what a user of podenv waits for: the first up, one with nothing
             changed, one after a patch was edited, and a push after a one-line
             edit of the kubelet. On a copy of the repository in _output/bench;
             with --cold the copy starts with empty Go caches and without images

With --output tsv each line begins with the table's name, and a table's first line
has its headings; numbers are in seconds and bytes.`,
		Example: `  podenv bench
  podenv bench --only envfile --count 1 --output tsv
  podenv bench --only cluster --name podenv --pods 20
  podenv bench --only harness --cold`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.check(); err != nil {
				return err
			}
			return b.run(cmd.Context())
		},
	}
	a.nameFlag(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&b.only, "only", []string{"envfile", "names", "expansion", "kubelet"}, "measure these groups")
	flags.StringVarP(&b.format, "output", "o", "table", "table, tsv or json")
	flags.IntVar(&b.count, "count", 6, "how many times each benchmark runs; the median counts (not for cluster and harness)")
	flags.IntVar(&b.pods, "pods", 50, "how many pods of each kind (cluster)")
	flags.BoolVar(&b.cold, "cold", false, "begin with empty caches (harness)")
	return cmd
}

// benchRun is one run of podenv bench.
type benchRun struct {
	app         *app
	only        []string
	format      string
	count, pods int
	cold        bool
}

// treeEnv is how Go commands run in a tree: as a module of its own, with the flags that the
// builds use, so that all share the build cache.
var treeEnv = []string{"GOWORK=off", "GOFLAGS=-mod=readonly -trimpath", "CGO_ENABLED=0"}

// group measures one thing.
type group func(context.Context) (*bench.Report, error)

func (b *benchRun) groups() map[string]group {
	return map[string]group{
		"envfile":   b.inModule("envfile", bench.EnvFile),
		"names":     b.inModule("names", bench.Names),
		"expansion": b.inModule("expansion", bench.Expansion),
		"kubelet":   b.kubelet, "cluster": b.cluster, "harness": b.harness,
	}
}

// check finds what is wrong with the flags.
func (b *benchRun) check() error {
	groups := b.groups()
	for _, name := range b.only {
		if groups[name] == nil {
			return &usageError{fmt.Errorf("--only %q: choose of %s", name, strings.Join(slices.Sorted(maps.Keys(groups)), ", "))}
		}
	}
	switch {
	case !slices.Contains([]string{"table", "tsv", "json"}, b.format):
		return &usageError{fmt.Errorf("--output %q: choose table, tsv or json", b.format)}
	case b.count < 1:
		return &usageError{fmt.Errorf("--count %d: a benchmark runs 1 time or more", b.count)}
	case b.pods < 1:
		return &usageError{fmt.Errorf("--pods %d: there is 1 or more of each kind", b.pods)}
	case b.cold && !slices.Contains(b.only, "harness"):
		return &usageError{errors.New("--cold is about --only harness")}
	}
	return nil
}

// run measures the groups and prints each as it is done, but JSON, which is one
// document.
func (b *benchRun) run(ctx context.Context) error {
	var tables []bench.Table
	var relations []bench.Relation
	for _, name := range b.only {
		report, err := b.groups()[name](ctx)
		if err != nil {
			return err
		}
		tables, relations = append(tables, report.Table), append(relations, report.Relations...)
		if err := b.print(report.Table); err != nil {
			return err
		}
	}
	if len(relations) > 0 {
		table := bench.Relations(relations)
		tables = append(tables, table)
		if err := b.print(table); err != nil {
			return err
		}
	}
	if b.format == "json" {
		return bench.WriteJSON(b.app.out, tables)
	}
	return nil
}

func (b *benchRun) print(t bench.Table) error {
	switch b.format {
	case "table":
		return bench.WriteTable(b.app.out, t)
	case "tsv":
		return bench.WriteTSV(b.app.out, t)
	}
	return nil
}

// inModule is a group of benchmarks of test/bench.
func (b *benchRun) inModule(name string, measure func(context.Context, layout.Layout, int, *progress.Step) (*bench.Report, error)) group {
	return func(ctx context.Context) (*bench.Report, error) {
		step := b.app.reporter().Step("bench " + name)
		report, err := measure(ctx, b.app.layout, b.count, step)
		return report, step.End(err)
	}
}

func (b *benchRun) kubelet(ctx context.Context) (*bench.Report, error) {
	p, err := b.app.pipeline()
	if err != nil {
		return nil, err
	}
	tree, err := openOrAssemble(ctx, p)
	if err != nil {
		return nil, err
	}
	step := p.Reporter.Step("bench kubelet")
	report, err := bench.Kubelet(ctx, tree.Dir, treeEnv, b.count, step)
	return report, step.End(err)
}

// openOrAssemble returns the tree as it is, edits included, and makes it where there
// is none.
func openOrAssemble(ctx context.Context, p *pipeline.Pipeline) (*source.Tree, error) {
	t, err := source.Open(p.Layout, p.Series, p.Stock)
	if !errors.Is(err, source.ErrNoTree) {
		return t, err
	}
	if err := p.Packages(ctx); err != nil {
		return nil, err
	}
	return p.Tree(ctx, source.Options{})
}

func (b *benchRun) harness(ctx context.Context) (*bench.Report, error) {
	h := &harnessBench{app: b.app, cold: b.cold}
	return h.run(ctx)
}
