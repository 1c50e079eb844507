package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
)

type rebaseFlags struct {
	from, to, release   string
	resume, skip, abort bool
}

func newRebase(a *app) *cobra.Command {
	var f rebaseFlags
	cmd := &cobra.Command{
		Use:   "rebase",
		Short: "Carry patches to another Kubernetes minor, or to a newer release",
		Long: `rebase merges the patches of one series into the release of another and writes
them to its patches/<minor>. It creates a series that does not exist yet, on the
newest release of the minor unless --release names one. It stops at a patch that
conflicts, as git am -3 does: resolve the conflict where it says and continue with
--continue. Then it assembles the tree, generated code included.

With --to alone, it moves that series to another release of its minor: to the newest
unless --release names one. Conflicts are resolved in the same way, and patches/<minor>
changes only when all patches apply. podenv series --newer lists newer releases.

A patch that has not changed since it was carried is not carried again, and keeps
its adaptations. So after you change one series, the same command updates the next
one. rebase prints what it does with each patch. "applied again" is a patch that was
adapted before, has changed since and applies without a conflict: check whether it
needs to be adapted again.

The last line is the effort: the sum of a score for each patch, 1 if its context has
moved, 3 if git merged it or applied it again, 10 if you resolved it by hand.`,
		Example: `  podenv rebase --from v1.33 --to v1.32 --release v1.32.13
  podenv rebase --from tekton-v1.10 --to tekton-v1.11
  podenv rebase --to v1.37 --release v1.37.2
  podenv rebase --continue          # after resolving a conflict
  podenv rebase --skip              # leave this patch out
  podenv rebase --abort             # drop what was done so far`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.resume && f.skip || f.resume && f.abort || f.skip && f.abort {
				return &usageError{errors.New("--continue, --skip and --abort exclude one another: choose one")}
			}
			return a.rebase(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "the series whose patches to carry (default that of --to)")
	flags.StringVar(&f.to, "to", "", "the minor to carry them to")
	flags.StringVar(&f.release, "release", "", "the release to carry them to (default the newest)")
	flags.BoolVar(&f.resume, "continue", false, "go on where the rebase stopped")
	flags.BoolVar(&f.skip, "skip", false, "leave out the patch at which it stopped, and go on")
	flags.BoolVar(&f.abort, "abort", false, "drop the rebase; patches/ stays as it is")
	return cmd
}

func (a *app) rebase(ctx context.Context, f rebaseFlags) error {
	if err := a.findRebase(&f); err != nil {
		return err
	}
	if f.abort {
		to, err := series.Load(a.layout, f.to)
		if err != nil {
			return err
		}
		step := a.reporter().Step("rebase")
		return step.End(source.AbortRebase(ctx, a.layout, to, step))
	}
	from, err := series.Load(a.layout, f.from)
	if err != nil {
		return err
	}
	// The generators of both trees need the packages' tools.
	p := &pipeline.Pipeline{Layout: a.layout, Series: from, Reporter: a.reporter()}
	if err := p.Packages(ctx); err != nil {
		return err
	}
	step := p.Reporter.Step("rebase")
	to, err := a.rebaseTarget(ctx, f, from, step)
	if err != nil {
		return step.End(err)
	}
	done, written, err := source.Rebase(ctx, a.layout, from, to, f.skip, step)
	if err := step.End(err); err != nil {
		return err
	}
	for _, d := range done {
		fmt.Fprintf(a.out, "%s\t%s\n", d.How, d.Title)
	}
	if len(done) > 0 {
		fmt.Fprintf(a.out, "effort\t%s\n", source.Effort(done))
	}
	if written != nil {
		a.printWritten(written, "wrote\t")
	}
	if slices.ContainsFunc(done, func(d source.Rebased) bool { return d.How == source.RebasedAgain }) {
		fmt.Fprintf(a.errs, "%q: these patches were adapted to %s before; see with `git diff patches/%[2]s` what has to be adapted again\n", source.RebasedAgain, to.Name)
	}
	if p.Series, err = series.Load(a.layout, to.Name); err != nil {
		return err
	}
	if _, err := p.Tree(ctx, source.Options{}); err != nil {
		return fmt.Errorf("%w\n  the patches are carried: patches/%s is complete but for what this release asks of them; a new file that has to differ goes to patches/%[2]s/new; then: podenv tree --series %[2]s", err, to.Name)
	}
	return nil
}

// findRebase checks --from and --to. With --continue, --skip or --abort, it fills in a missing
// one from the rebase in progress.
func (a *app) findRebase(f *rebaseFlags) error {
	inProgress := f.resume || f.skip || f.abort
	if f.from == "" && !inProgress {
		f.from = f.to
	}
	if f.from != "" && f.to != "" {
		if series.IsTekton(f.from) != series.IsTekton(f.to) {
			return &usageError{fmt.Errorf("--from %s --to %s: a series of Tekton cannot be carried to Kubernetes, nor the other way round", f.from, f.to)}
		}
		return nil
	}
	if !inProgress {
		return &usageError{errors.New("--to is missing: name the minor to carry patches to; see podenv rebase --help")}
	}
	found, err := source.RebasesInProgress(a.layout)
	if err != nil {
		return err
	}
	maps.DeleteFunc(found, func(to, from string) bool {
		return f.to != "" && f.to != to || f.from != "" && f.from != from
	})
	if len(found) == 0 {
		return errors.New("no such rebase is in progress: begin one with --from and --to")
	}
	if len(found) > 1 {
		return &usageError{fmt.Errorf("rebases to %s are in progress: name one with --to", strings.Join(slices.Sorted(maps.Keys(found)), ", "))}
	}
	for to, from := range found {
		f.to, f.from = to, from
	}
	return nil
}

// rebaseTarget returns the series --to, on --release or the newest release if it is new or moves.
func (a *app) rebaseTarget(ctx context.Context, f rebaseFlags, from series.Series, step *progress.Step) (series.Series, error) {
	if f.release != "" && semver.MajorMinor(f.release) != series.Minor(f.to) {
		return series.Series{}, &usageError{fmt.Errorf("--release %s is not a release of %s", f.release, f.to)}
	}
	if f.to == from.Name {
		return source.Repin(ctx, a.layout, from, f.release, step)
	}
	if f.release != "" {
		return source.Pin(ctx, a.layout, f.to, f.release, step)
	}
	to, err := series.Load(a.layout, f.to)
	if !errors.Is(err, series.ErrUnknown) {
		return to, err
	}
	release, err := source.NewestRelease(ctx, f.to)
	if err != nil {
		return series.Series{}, err
	}
	return source.Pin(ctx, a.layout, f.to, release, step)
}
