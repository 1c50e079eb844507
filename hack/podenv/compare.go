package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/compare"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/suite"
)

// comparedSuites are the suites of features that some releases have without the patches.
var comparedSuites = []string{"envfiles", "relaxed", "expansion"}

func newCompare(a *app) *cobra.Command {
	var o suite.Options
	var suites, with []string
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Run the suites with and without the patches, and list the specs that only pass with them",
		Long: `compare brings up a cluster of the series and one of its release without patches,
one after the other, with every gate on that the release has. It runs the same suites on
both, and prints the specs that fail on the release and pass with the patches. A spec on
the release has twice as long as the slowest spec took with the patches.

With --with it applies these patches to the release, in place of those of the series. It
brings up one cluster of that, NAME, and lists the specs that fail there, and those that
need one of the patches, with all patches of their folders that each spec needs.

The table is Markdown. tsv and json have every spec, with its state on both clusters.
Reports are in _output/junit. The clusters, NAME-patched and NAME-stock, are deleted when
their suites have run, also after Ctrl-C, unless --keep is given.

Exit status: 0, or 1 if a spec fails with the patches of the series, or with all of --with
that it needs.`,
		Example: `  podenv compare --series v1.37
  podenv compare --series v1.34 --suite envfiles --focus FIFO
  podenv compare --series v1.37 --suite envfiles --with patches/upstream/v1.37
  podenv compare --series v1.37 --output tsv | awk -F '\t' '$3 == "failed"'`,
		Args: noArgs,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, _ []string) (err error) {
			if err := cluster.ValidateName(a.name + "-patched"); err != nil { // as --name only begins it
				return &usageError{fmt.Errorf("--name: %w", err)}
			}
			if err := checkWords("--suite", comparedSuites, suites...); err != nil {
				return err
			}
			o.Suite, o.Walks, o.Starts = comparedSuites[0], 1, 50
			if err := o.Validate(a.layout); err != nil {
				return &usageError{err}
			}
			if p.Series.Fixes, err = series.FindFixes(with); err != nil {
				return &usageError{fmt.Errorf("--with: %w", err)}
			}
			needs, given, err := fixes(p.Series)
			if err != nil {
				return &usageError{fmt.Errorf("--with: %w", err)}
			}
			rows, err := a.compare(ctx, p, o, suites)
			if err != nil {
				return err
			}
			compare.Name(rows, needs, given)
			if err := writeRows(a, rows, compare.WriteMarkdown(p.Series.Release, len(p.Series.Fixes)), compare.WriteTSV); err != nil {
				return err
			}
			if failed := compare.FailedPatched(rows); len(failed) > 0 {
				return fmt.Errorf("with the patches these specs fail, see _output/junit:\n  %s", strings.Join(failed, "\n  "))
			}
			return nil
		}),
	}
	a.outputFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&a.name, "name", "compare", "what the names of the two clusters begin with")
	flags.StringSliceVar(&suites, "suite", comparedSuites, "the suites to run")
	flags.StringVar(&o.Focus, "focus", "", "run only specs whose name matches this regular expression")
	flags.IntVar(&o.Procs, "procs", e2eProcs, "how many specs run at a time")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Hour, "how long all specs of a suite may take on one cluster")
	flags.StringArrayVar(&with, "with", nil, "a patch of the release, or a folder of patches; may be repeated")
	flags.BoolVar(&a.keep, "keep", false, "leave the clusters")
	return cmd
}

// compare runs suites on a patched and then on a stock cluster. The durations on the first cluster set the
// timeout of a spec on the second one. Of a series with fixes there is only a stock one, which has them.
func (a *app) compare(ctx context.Context, p *pipeline.Pipeline, o suite.Options, suites []string) (rows []compare.Row, err error) {
	onPatched, onStock := *a, *a
	onStock.stock = true
	var patched map[string][]junit.Case
	if len(p.Series.Fixes) > 0 {
		o.SpecTimeout = 5 * time.Minute
	} else {
		onPatched.name += "-patched"
		onStock.name += "-stock"
		if patched, err = onPatched.runSuites(ctx, *p, o, suites); err != nil {
			return nil, err
		}
		for _, cases := range patched {
			o.SpecTimeout = max(o.SpecTimeout, compare.Limit(cases))
		}
	}
	stock, err := onStock.runSuites(ctx, *p, o, suites)
	if err != nil {
		return nil, err
	}
	for _, name := range suites {
		rows = append(rows, compare.Rows(name, stock[name], patched[name])...)
	}
	return rows, nil
}

// fixes are the specs that each fix of the folders of the series' fixes names, and which of these
// fixes the series has.
func fixes(s series.Series) (specs map[string][]string, given []string, err error) {
	number := func(path string) string { n, _, _ := strings.Cut(filepath.Base(path), "-"); return n }
	var folders []string
	for _, fix := range s.Fixes {
		folders, given = append(folders, filepath.Dir(fix)), append(given, number(fix))
	}
	if s.Fixes, err = series.FindFixes(folders); err != nil || folders == nil {
		return nil, nil, err
	}
	patches, err := s.Describe()
	specs = map[string][]string{}
	for _, p := range patches {
		for _, trailer := range p.Trailers {
			if spec, ok := strings.CutPrefix(trailer, "Fixes-Spec: "); ok {
				specs[number(p.File)] = append(specs[number(p.File)], spec)
			}
		}
	}
	return specs, given, err
}

// runSuites runs suites on a cluster of their own, and returns the results by suite.
func (a *app) runSuites(ctx context.Context, p pipeline.Pipeline, o suite.Options, suites []string) (results map[string][]junit.Case, err error) {
	want := cluster.Config{Name: a.name, Workers: 1}
	p.Stock, p.Temporary = a.stock, !a.keep
	if a.stock {
		if want.Gates, err = featuregates.EnabledInStock(a.series); err != nil {
			return nil, err
		}
	}
	r, _, err := a.up(ctx, &p, want, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.remove(ctx, p.Reporter)) }()
	o.Kubectl = r.Build.Binaries["kubectl"]
	results = map[string][]junit.Case{}
	var none []error // of suites of which --focus selects no spec
	for _, name := range suites {
		o := o
		o.Suite = name
		o.JUnit = filepath.Join(a.layout.JUnit(), strings.Join([]string{a.series, a.name, name + ".xml"}, "-"))
		if err := a.ownCluster(ctx, &o); err != nil {
			return nil, err
		}
		if a.stock { // specs that need a gate that the release lacks are skipped
			o.RequireGates = slices.DeleteFunc(o.RequireGates, func(gate string) bool { return !want.Gates[gate] })
		}
		step := p.Reporter.Step("e2e " + name + " on " + a.name)
		result, err := suite.Run(ctx, a.layout, o, step)
		if errors.Is(err, suite.ErrNoSpecs) && result.Skipped == 0 {
			none = append(none, err)
		}
		if errors.Is(err, suite.ErrNoSpecs) || errors.Is(err, suite.ErrFailed) && result.Failed > 0 {
			step.Now("%s", result.Counts)
			err = nil
		}
		if err := step.End(err); err != nil {
			return nil, err
		}
		if results[name], err = junit.Read(o.JUnit); err != nil {
			return nil, err
		}
	}
	if len(none) == len(suites) {
		return nil, none[0]
	}
	return results, nil
}
