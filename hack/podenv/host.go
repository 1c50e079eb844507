package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/clean"
	"podenv.dev/hack/internal/doctor"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/jsonout"
)

func newDoctor(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the host: engine, privileged containers, capabilities, cgroups, disk, tools",
		Long: `doctor examines what a run needs and says, for each finding, how to fix it. It
changes nothing and uses no network. Exit status: 0 when a run can work, 1 when
something must be fixed first.`,
		Example: `  podenv doctor
  podenv doctor --output tsv | awk -F '\t' '$2 == "fail"'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := doctor.Examine(cmd.Context(), a.layout)
			if err := writeRows(a, findings, doctor.WriteTable, doctor.WriteTSV); err != nil {
				return err
			}
			if doctor.Failed(findings) {
				return errReported
			}
			return nil
		},
	}
	a.outputFlag(cmd)
	return cmd
}

func newClean(a *app) *cobra.Command {
	unusedFor := 7 * 24 * time.Hour
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove images, builds and caches that no series needs",
		Long: `clean lists what podenv made, with its size, whether it stays, and why, and removes
what no series needs:

  image    node images in Docker, except the newest of each series and release and
           those that containers use; base images that no node image uses
  tree     of a series that patches/ no longer has; never one with edits
  build    of a series that patches/ no longer has
  cache    files in _output/cache that nothing has read for a week (--unused-for)
  scratch  logs, results of conformance and gate walk, and folders that tests work in,
           by the same rule

An image's size includes layers that it shares with others. make distclean deletes all
of _output, but no tree: those are in trees/.`,
		Example: `  podenv clean --dry-run            # look first
  podenv clean
  podenv clean -n -o tsv | awk -F '\t' '$1 == "remove" {n += $3} END {print n}'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if unusedFor < 0 {
				return &usageError{fmt.Errorf("--unused-for %s: a duration is 0 or more", unusedFor)}
			}
			e, err := engine.Find(cmd.Context())
			if err != nil {
				fmt.Fprintf(a.errs, "podenv: images are left out: %v\n", err)
			}
			items, err := clean.List(cmd.Context(), a.layout, e, unusedFor)
			if err != nil {
				return err
			}
			if err := writeRows(a, items, writeCleanTable, writeCleanTSV); err != nil || dryRun {
				return err
			}
			return clean.Run(cmd.Context(), items)
		},
	}
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "only list")
	cmd.Flags().DurationVar(&unusedFor, "unused-for", unusedFor, "remove cached files that nothing has read for this long")
	a.outputFlag(cmd)
	return cmd
}

func writeCleanTable(w io.Writer, items []clean.Item) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	total := map[string]int64{}
	for _, i := range items {
		total[i.Action] += i.Bytes
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", i.Action, i.Kind, mib(i.Bytes), i.Name, i.Why)
	}
	fmt.Fprintf(t, "%s\tall\t%s\t\t\n%s\tall\t%s\t\t\n", clean.Remove, mib(total[clean.Remove]), clean.Keep, mib(total[clean.Keep]))
	return t.Flush()
}

func writeCleanTSV(w io.Writer, items []clean.Item) error {
	return jsonout.WriteTSV(w, items, func(i clean.Item) []any { return []any{i.Action, i.Kind, i.Bytes, i.Name, i.Why} })
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
