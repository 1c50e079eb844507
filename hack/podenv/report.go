package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/htmlreport"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

func newReport(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "report",
		Short: "Compare the results of two runs",
		Long: `test, e2e, conformance, gate walk and bench write a page with their results to
_output/report/index.html, and all its data to index.json beside it. The page needs no
other file and no network. The next run replaces it: copy the folder to keep it.`,
		Example: `  podenv test --only lint,unit && cp -r _output/report before
  podenv test --only lint,unit && podenv report diff before _output/report`,
	}, "verb", newReportDiff(a))
}

func newReportDiff(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "List what newly fails, no longer runs, newly passes, or is slower by more than noise",
		Long: `diff compares the results in two report folders. A result is slower if it passed in both
runs, took a second or more in each, and took a second longer and more than LIMIT times
as long as before. LIMIT is the median of these ratios, as the whole host may be slower,
times three standard deviations, estimated from the median deviation, and at least 1.25.
With fewer than ten ratios it is 2. diff prints LIMIT.

Exit status: 0, or 1 if something newly fails.`,
		Example: `  podenv report diff before _output/report
  podenv report diff before/index.html after/index.html --output json`,
		Args: takes(2, "two folders with a report"),
		RunE: func(_ *cobra.Command, args []string) error {
			before, errBefore := htmlreport.Read(args[0])
			after, errAfter := htmlreport.Read(args[1])
			if err := errors.Join(errBefore, errAfter); err != nil {
				return err
			}
			changes, limit := htmlreport.Diff(before, after)
			fmt.Fprintf(a.errs, "podenv: more than %.2f times as long as before is slower\n", limit)
			if err := writeColumns(a, "CHANGE\tBEFORE\tAFTER\tGROUP\tNAME", changes, htmlreport.Change.Fields); err != nil {
				return err
			}
			if slices.ContainsFunc(changes, func(c htmlreport.Change) bool { return c.Change == htmlreport.NewlyFailing }) {
				return errReported
			}
			return nil
		},
	}
	a.outputFlag(cmd)
	return cmd
}

// reported runs a verb, and writes the report page with what do has added to the report, also after an error.
func (a *app) reported(do func(*htmlreport.Run) error) error {
	command := "podenv"
	for _, arg := range os.Args[1:] {
		command += " " + run.Quote(arg)
	}
	report, dir := &htmlreport.Run{Command: command, Start: time.Now()}, filepath.Join(a.layout.Output(), "report")
	if err := os.RemoveAll(dir); err != nil { // it is not about this run
		return err
	}
	err := do(report)
	if len(report.Results)+len(report.Tables)+len(report.Texts) == 0 {
		return err
	}
	report.Seconds = time.Since(report.Start).Seconds()
	if err != nil && !errors.Is(err, errReported) {
		report.Problem = err.Error()
	}
	if s, err := series.Load(a.layout, a.series); err == nil {
		on := fmt.Sprintf("%s: %s with %d patches", s.Name, s.Release, len(s.Patches()))
		if a.stock {
			on = fmt.Sprintf("%s: %s without patches", s.Name, s.Release)
		}
		report.On = append(report.On, htmlreport.Text{Title: "Series", Text: on})
	}
	report.On = append(report.On, htmlreport.Text{Title: "Host", Text: htmlreport.Host()})
	report.Documents = slices.DeleteFunc(slices.Clone(featuregates.Documents), func(d featuregates.Document) bool {
		return !slices.ContainsFunc(d.Rows, func(row [2]string) bool { return len(report.Showing(d.Name, row[0])) > 0 })
	})
	return errors.Join(err, htmlreport.Write(dir, report))
}

// addIfThere adds a file to a report. A run that was cut short may not have it.
func addIfThere(add func(file string) error, file string) error {
	if err := add(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// addRows adds the results of specs of a release. Those that ran just now have details in files of Ginkgo.
func addRows(report *htmlreport.Run, group string, rows []conformance.Row, files ...string) error {
	ran := htmlreport.Run{}
	for _, file := range files {
		if err := addIfThere(ran.AddGinkgo, file); err != nil {
			return err
		}
	}
	for _, row := range rows {
		result := htmlreport.Result{Name: row.Spec, State: row.State, Seconds: row.Seconds, Why: row.Why}
		result.State = cmp.Or(map[string]string{conformance.LeftOut: htmlreport.Skipped, conformance.Flaky: htmlreport.Passed}[row.State], row.State)
		if i := slices.IndexFunc(ran.Results, func(r htmlreport.Result) bool { return r.Name == row.Spec && r.State == row.State }); i >= 0 {
			result = ran.Results[i]
		}
		result.Group = group
		report.Results = append(report.Results, result)
	}
	report.Spans = append(report.Spans, ran.Spans...)
	return nil
}
