package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/series/report"
	"podenv.dev/hack/internal/source"
)

func newSeries(a *app) *cobra.Command {
	var verified, newer, patches bool
	cmd := &cobra.Command{
		Use:   "series",
		Short: "List the series: release, patches, lines touched, feature gates",
		Long: `series prints, for each series, the release that it is based on, its patches and their
lines, the lines that these add and remove in existing files (the cost of a rebase),
the new files that they add, and the feature gates of featuregates/ with stage and
default. podenv starts the built binaries for a moment, without a cluster, and checks
that they have the gates at that stage and default. A series that is not built says so.

With --patches it prints instead a line for each patch: the lines that it adds without
tests, those of tests, its title and its fate, which is how long it is carried. With
--series it prints those of one series.

With --newer it prints instead a line for each series whose minor has a newer release:
series, its release, the newest one. podenv rebase --to SERIES moves it.

With --verify it applies, generates, compiles and tests every series, prints how far
each got, and runs podenv export --verify. It does not repeat what has not changed.
With --series it does so for one series, without export --verify: a job for each in CI.

Exit status: 0, or 1 if the binaries and featuregates/ disagree, or a series fails.`,
		Example: `  podenv series
  podenv series --patches --series v1.33
  podenv series --newer             # which minors have a newer release?
  podenv series --verify            # all of them: hours on an empty cache
  podenv series --verify --series v1.34
  podenv series --output tsv | awk -F '\t' '$7 == "EnvFiles"'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			all, err := series.LoadAll(a.layout)
			if err == nil {
				_, err = series.Load(a.layout, a.series)
			}
			switch {
			case err != nil:
				return err
			case patches:
				return a.printPatches(all, cmd.Flags().Changed("series"))
			case newer:
				return a.printNewer(ctx, all)
			case verified && cmd.Flags().Changed("series"):
				return a.prove(ctx, onlySeries(a.series), "series-"+a.series, "-podenv.only=series")
			case verified:
				return a.prove(ctx, "^Test(Series|VerifyScripts)$", "series", "-podenv.only=series,verify")
			}
			var reports []report.Report
			for _, s := range all {
				r, err := report.Of(ctx, a.layout, s)
				if err != nil {
					return err
				}
				reports = append(reports, r)
			}
			if err := writeRows(a, reports, report.WriteTable, report.WriteTSV); err != nil {
				return err
			}
			if err := errors.Join(series.CheckNewFiles(a.layout), series.CheckPatches(a.layout)); err != nil {
				fmt.Fprintln(a.errs, "podenv:", err)
			}
			if report.Disagree(reports) {
				return errReported
			}
			return nil
		},
	}
	a.outputFlag(cmd)
	cmd.Flags().BoolVar(&patches, "patches", false, "only print the patches, with their sizes and fates")
	cmd.Flags().BoolVar(&newer, "newer", false, "only print the series whose minor has a newer release")
	cmd.Flags().BoolVar(&verified, "verify", false, "apply, generate, compile and test every series")
	return cmd
}

// onlySeries is the -test.run of TestSeries for one series.
func onlySeries(name string) string { return "^TestSeries$/^series_" + regexp.QuoteMeta(name) + "$" }

// printPatches prints the patches of every series, or of that of --series.
func (a *app) printPatches(all []series.Series, one bool) error {
	var patches []series.Patch
	for _, s := range all {
		if one && s.Name != a.series {
			continue
		}
		of, err := s.Describe()
		if err != nil {
			return err
		}
		patches = append(patches, of...)
	}
	return writeRows(a, patches, report.WritePatchesTable, report.WritePatchesTSV)
}

// printNewer prints a tab-separated line for each series whose minor has a newer release.
func (a *app) printNewer(ctx context.Context, all []series.Series) error {
	var failed error // one project may be unavailable
	for _, s := range all {
		newest, err := source.NewestRelease(ctx, s.Name)
		failed = errors.Join(failed, err)
		if err == nil && semver.Compare(newest, s.Release) > 0 {
			fmt.Fprintf(a.out, "%s\t%s\t%s\n", s.Name, s.Release, newest)
		}
	}
	return failed
}
