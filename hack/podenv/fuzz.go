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

	"podenv.dev/hack/internal/fuzz"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/verify"
)

func newFuzz(a *app) *cobra.Command {
	f := &fuzzRun{app: a}
	var target string
	cmd := &cobra.Command{
		Use:   "fuzz",
		Short: "Run every fuzz target of the leaf packages and of the patches, each for many executions",
		Long: `fuzz runs one after the other the Go fuzz targets of the packages under pkg/ and
staging/, and those that the patches add to the tree, which is compiled as it is, your
edits included. Each runs for --executions, after its seeds; what makes one fail is
written to a file beside the test, and the command that runs it again is shown.

Go keeps the inputs that reached new code in its build cache (go clean -fuzzcache
drops them), so a later run begins with what an earlier one found. The targets of the
patches run without this guidance: with most of Kubernetes linked in, it would take
nearly all of the time. --unguided does so for all: many more executions in the same
time, each less likely to find something new.

Where there is no tree yet, it is assembled first, but not for --list and --target,
which then do without the targets of the patches.

It ends with a table and the line "N passed, N failed, N skipped"; the report in JUnit
format is _output/junit/fuzz.xml. With --list it only prints the targets.`,
		Example: `  podenv fuzz
  podenv fuzz --target 'envfile\.FuzzParse$' --executions 100000
  podenv fuzz --list`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.executions < 1 {
				return &usageError{fmt.Errorf("--executions %d: a target runs 1 time or more", f.executions)}
			}
			if f.pattern, err = regexp.Compile(target); err != nil {
				return &usageError{fmt.Errorf("--target: %w", err)}
			}
			return f.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&target, "target", "", "only targets whose PACKAGE.NAME matches this regular expression")
	flags.Int64Var(&f.executions, "executions", 10_000_000, "how many times each target runs")
	flags.BoolVar(&f.unguided, "unguided", false, "do not look which inputs reach new code: faster by far")
	flags.BoolVar(&f.list, "list", false, "only print the targets")
	return cmd
}

// fuzzRun is one run of podenv fuzz.
type fuzzRun struct {
	app        *app
	pattern    *regexp.Regexp
	executions int64
	list       bool
	unguided   bool

	p *pipeline.Pipeline
}

func (f *fuzzRun) run(ctx context.Context) (err error) {
	if f.p, err = f.app.pipeline(); err != nil {
		return err
	}
	targets, err := f.targets(ctx)
	if err != nil {
		return err
	}
	if f.list {
		for _, t := range targets {
			fmt.Fprintln(f.app.out, t)
		}
		return nil
	}
	if len(targets) == 0 {
		return fmt.Errorf("no fuzz target matches --target %q: podenv fuzz --list prints them", f.pattern)
	}
	return f.fuzz(ctx, targets)
}

// targets finds the targets that the flags choose.
func (f *fuzzRun) targets(ctx context.Context) ([]fuzz.Target, error) {
	step := f.p.Reporter.Step("fuzz targets")
	leaf := fuzz.Module{Dir: f.app.layout.Root, Unguided: f.unguided}
	targets, err := leaf.Targets(ctx, fuzz.LeafPackages(leaf.Dir), step)
	if err := step.End(err); err != nil {
		return nil, err
	}
	added, err := f.treeTargets(ctx)
	if err != nil {
		return nil, err
	}
	targets = append(targets, added...)
	return slices.DeleteFunc(targets, func(t fuzz.Target) bool { return !f.pattern.MatchString(t.String()) }), nil
}

// treeTargets finds the targets that the patches add.
func (f *fuzzRun) treeTargets(ctx context.Context) ([]fuzz.Target, error) {
	tree, err := f.tree(ctx)
	if errors.Is(err, source.ErrNoTree) {
		fmt.Fprintf(f.app.errs, "podenv: without the targets of the patches: %v\n", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	step := f.p.Reporter.Step("fuzz targets of the patches")
	targets, err := fuzz.Module{Dir: tree.Dir, Env: verify.TreeEnv, Unguided: true}.Added(ctx, tree, f.app.layout.Root, step)
	return targets, step.End(err)
}

// tree returns the tree as it is. Only a run of everything makes one where there is
// none.
func (f *fuzzRun) tree(ctx context.Context) (*source.Tree, error) {
	if f.list || f.pattern.String() != "" {
		return source.Open(f.p.Layout, f.p.Series, false)
	}
	return openOrAssemble(ctx, f.p)
}

// fuzz runs the targets one after the other: each uses all the cores. After Ctrl-C it
// still says what was done.
func (f *fuzzRun) fuzz(ctx context.Context, targets []fuzz.Target) error {
	start := time.Now()
	var results []fuzz.Result
	var cases []junit.Case
	for i, t := range targets {
		step := f.p.Reporter.Step(fmt.Sprintf("fuzz %s (%d of %d)", t, i+1, len(targets)))
		r := t.Run(ctx, f.executions, step)
		step.End(r.Error()) //nolint:errcheck // the summary shows it
		results, cases = append(results, r), append(cases, r.Case())
		if ctx.Err() != nil {
			break
		}
	}
	report := filepath.Join(f.app.layout.JUnit(), "fuzz.xml")
	if err := junit.Write(report, "fuzz", time.Since(start), cases); err != nil {
		return err
	}
	fmt.Fprintln(f.app.out)
	counts := fuzz.Summary(f.app.out, report, results)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if counts.Failed > 0 || counts.Passed == 0 {
		return errReported
	}
	return nil
}
