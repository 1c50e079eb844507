package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/series/report"
)

func newSeries(a *app) *cobra.Command {
	var format string
	var verified bool
	cmd := &cobra.Command{
		Use:   "series",
		Short: "List the series: release, patches, lines touched, feature gates",
		Long: `series prints, for each series, the release that it stands on, the number of its
patches and of the lines that these add and remove in existing files, which is what
a rebase costs, and the feature gates with stage and default as the built binaries
report them: one is started for a moment, without a cluster, and its metric
kubernetes_feature_enabled is read. A series that is not built has the gates of
featuregates/ and says so.

With --verify it first applies, generates, compiles and tests every series, and
prints how far each got; what has not changed since is not done again.

Exit status: 0, or 1 where the binaries and featuregates/ disagree, or a series
fails.`,
		Example: `  podenv series
  podenv series --verify            # all of them: hours on an empty cache
  podenv series --output tsv | awk -F '\t' '$7 == "EnvFiles"'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			render, ok := map[string]func(*app, []report.Report) error{
				"table": func(a *app, r []report.Report) error { return report.WriteTable(a.out, r) },
				"tsv":   func(a *app, r []report.Report) error { return report.WriteTSV(a.out, r) },
				"json":  func(a *app, r []report.Report) error { return report.WriteJSON(a.out, r) },
			}[format]
			if !ok {
				return &usageError{fmt.Errorf("--output %q: choose table, tsv or json", format)}
			}
			if verified {
				return a.prove(cmd.Context(), "^TestSeries$", "series", "-podenv.only=series")
			}
			reports, err := a.seriesReports(cmd.Context())
			if err != nil {
				return err
			}
			if err := render(a, reports); err != nil {
				return err
			}
			if report.Disagree(reports) {
				return errReported
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table, tsv or json")
	cmd.Flags().BoolVar(&verified, "verify", false, "apply, generate, compile and test every series")
	return cmd
}

func (a *app) seriesReports(ctx context.Context) ([]report.Report, error) {
	names, err := series.Names(a.layout)
	if err != nil {
		return nil, err
	}
	var reports []report.Report
	for _, name := range names {
		s, err := series.Load(a.layout, name)
		if err != nil {
			return nil, err
		}
		r, err := report.Of(ctx, a.layout, s)
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}
