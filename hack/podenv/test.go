package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/htmlreport"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/proof"
)

func newTest(a *app) *cobra.Command {
	var only []string
	var keep, full bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Run the unmarked checks of docs/testing.md on one series, and print one summary",
		Long: `test sets up what it needs, as up does, and runs the Go tests of hack/proof: the
linters, the unit tests, the proofs of the patch series, Kubernetes' own tests of the
packages that the patches touch, the proofs of the node image with plain kind, and
the suites on a cluster of its own, which it deletes.

The last line is "N passed, N failed, N skipped". The exit status is 0 only if
something passed and nothing failed. The report in JUnit format goes to _output/junit,
and a page with all of it to _output/report/index.html. After Ctrl-C, test deletes its
clusters and ends with exit status 130.

Checks that compile, checks with clusters of their own, and the suites run at the same
time.

Groups for --only: lint, unit, source, upstream, image, e2e, and upgrade, which moves
the cluster up and down between builds and gates, with the kubelets of the series and
of the minor before. Only by name: patches, which tests the series after each patch, and
atlas, which takes a cluster by kubeadm through all newer minors and back.

With --full, upgrade uses all kubelets that the version skew policy allows, and runs the
specs that are labelled Slow. --full adds to its group each check that docs/testing.md
marks so, such as the upgrade by kubeadm, several control planes and the suite of Tekton.`,
		Example: `  podenv test
  podenv test --only lint,unit
  podenv test --only e2e --keep     # leave the cluster for a look
  podenv test --only patches,source,upstream,image,e2e,upgrade --full    # what make e2e-full runs`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkGroups(only, slices.Concat(proof.Groups, proof.ByName)); err != nil {
				return err
			}
			return a.reported(func(report *htmlreport.Run) error {
				report.On = []htmlreport.Text{{Title: "Counted", Text: "tests without subtests; the last line of the command counts the others, too"}}
				events := eventsOf(filepath.Join(a.layout.JUnit(), "podenv.xml"))
				if err := os.Remove(events); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
				err := a.prove(cmd.Context(), "^Test(Compiling|Clusters|OwnClusters)$", "podenv", "-podenv.only="+strings.Join(only, ","),
					fmt.Sprintf("-podenv.full=%t", full), fmt.Sprintf("-podenv.keep=%t", keep))
				return errors.Join(err, addIfThere(report.AddGoTest, events))
			})
		},
	}
	cmd.Flags().StringSliceVar(&only, "only", proof.Groups, "run only these groups, and what they need")
	cmd.Flags().BoolVar(&full, "full", false, "also every older kubelet, the slow specs and the slow proofs")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the test cluster")
	return cmd
}

// checkGroups refuses an --only that is empty or has an unknown group.
func checkGroups(only, groups []string) error {
	if len(only) == 0 {
		return &usageError{fmt.Errorf("--only '': no group: choose from %s", strings.Join(groups, ", "))}
	}
	return checkWords("--only", groups, only...)
}

func newFuzz(a *app) *cobra.Command {
	var target string
	var executions int64
	var unguided, list bool
	cmd := &cobra.Command{
		Use:   "fuzz",
		Short: "Run every fuzz target of the leaf packages and of the patches, each for many executions",
		Long: `fuzz runs the Go fuzz targets of the packages under pkg/ and staging/, and those that
the patches add to the tree, one after the other. It compiles the tree as it is, your
edits included. Each target runs its seeds and then --executions inputs, as with go
test -fuzz. If a target fails, fuzz writes the input to a file beside the test and
prints the command that runs it again.

Go keeps the inputs that reached new code in its build cache (go clean -fuzzcache
drops them), so a later run begins with what an earlier one found. The targets of the
patches run without this guidance: with most of Kubernetes linked in, it would take
nearly all of the time. --unguided does so for all: many more executions in the same
time, each less likely to find something new.

If there is no tree yet, fuzz assembles it first. It does not with --list, or if --target
matches a target under pkg/ or staging/: then it leaves out the targets of the patches.

The last line is "N passed, N failed, N skipped". The report in JUnit format goes to
_output/junit/fuzz.xml. A target that is interrupted counts as skipped and says how
many executions it had; the exit status is not 0 then. With --list, fuzz only prints
the targets.`,
		Example: `  podenv fuzz
  podenv fuzz --target 'envfile\.FuzzParse$' --executions 100000
  podenv fuzz --list`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if executions < 1 {
				return &usageError{fmt.Errorf("--executions %d: a target runs 1 time or more", executions)}
			}
			if _, err := regexp.Compile(target); err != nil {
				return &usageError{fmt.Errorf("--target: %w", err)}
			}
			flags := []string{"-podenv.only=fuzz", "-podenv.fuzz=" + target, fmt.Sprintf("-podenv.executions=%d", executions), fmt.Sprintf("-podenv.unguided=%t", unguided)}
			if !list {
				return a.prove(cmd.Context(), "^TestFuzz$", "fuzz", flags...)
			}
			if err := a.compileProofs(cmd.Context()); err != nil {
				return err
			}
			return a.proofCommand(cmd.Context(), append(flags, "-podenv.fuzz-list")).Run()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&target, "target", "", "only targets whose PACKAGE.NAME matches this regular expression")
	flags.Int64Var(&executions, "executions", 10_000_000, "how many times each target runs")
	flags.BoolVar(&unguided, "unguided", false, "do not check which inputs reach new code: much faster")
	flags.BoolVar(&list, "list", false, "only print the targets")
	return cmd
}

// proofTool is the path of a program that compileProofs builds.
func (a *app) proofTool(name string) string { return filepath.Join(a.layout.Cache("proof"), name) }

// compileProofs builds the tests of hack/proof and gotestsum.
func (a *app) compileProofs(ctx context.Context) error {
	if _, err := a.pipeline(); err != nil { // the series does not exist
		return err
	}
	step := a.reporter().Step("compiling the proofs")
	for _, args := range [][]string{
		{"test", "-c", "-o", a.proofTool("proof.test"), "./hack/proof"},
		{"build", "-o", a.proofTool("gotestsum"), "gotest.tools/gotestsum"},
	} {
		if err := run.Command(ctx, "go", args...).Dir(a.layout.Root).Log(step.Log()).Run(); err != nil {
			return step.End(err)
		}
	}
	return step.End(nil)
}

// prove runs the tests of hack/proof that pattern selects, with flags. They show their
// progress themselves; gotestsum writes the JUnit report called name and the summary.
func (a *app) prove(ctx context.Context, pattern, name string, flags ...string) error {
	podenv, err := os.Executable()
	if err != nil {
		return err
	}
	if err := a.compileProofs(ctx); err != nil {
		return err
	}
	return a.runProofs(ctx, filepath.Join(a.layout.JUnit(), name+".xml"), append(flags, "-podenv.cli="+podenv, "-test.run="+pattern))
}

// lastLine prints the last line, which CI reads.
const lastLine = `sh -c 'echo "$((TESTS_TOTAL - TESTS_FAILED - TESTS_SKIPPED)) passed, $TESTS_FAILED failed, $TESTS_SKIPPED skipped"'`

// proofCommand prepares the tests. They have a process group of their own, so that Ctrl-C reaches
// only podenv, which sends them SIGTERM once.
func (a *app) proofCommand(ctx context.Context, flags []string) *exec.Cmd {
	flags = append(flags, "-podenv.series="+a.series, fmt.Sprintf("-podenv.plain=%t", a.plain))
	cmd := exec.CommandContext(ctx, a.proofTool("proof.test"), flags...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Minute // to delete their clusters
	cmd.Dir, cmd.Stdout, cmd.Stderr = a.layout.Root, a.out, a.errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// eventsOf is the file with the events of the tests of a JUnit report.
func eventsOf(report string) string { return strings.TrimSuffix(report, ".xml") + ".json" }

// runProofs runs the tests. gotestsum reads their standard output; their progress goes to standard error.
func (a *app) runProofs(ctx context.Context, report string, flags []string) error {
	tests := a.proofCommand(ctx, append(flags, "-test.v=test2json", "-test.paniconexit0", "-test.timeout=0", "-test.parallel=8"))
	tests.Stdout = nil
	results, err := tests.StdoutPipe()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(report), 0o755); err != nil {
		return err
	}
	// tee, and not --jsonfile: on a full disk tee fails at the end, and gotestsum waits for ever.
	sum := exec.Command(a.proofTool("gotestsum"), "--raw-command", "--format=none", "--hide-summary=skipped", "--junitfile="+report, "--post-run-command="+lastLine,
		"--", "sh", "-c", `go tool test2json -t -p podenv.dev/hack/proof | tee "$1"`, "sh", eventsOf(report))
	sum.Dir, sum.Stdin, sum.Stdout, sum.Stderr = a.layout.Root, results, a.out, a.errs
	sum.SysProcAttr = tests.SysProcAttr
	if err := sum.Start(); err != nil {
		return fmt.Errorf("starting gotestsum: %w", err)
	}
	if err := tests.Start(); err != nil {
		return fmt.Errorf("starting the proofs: %w", err)
	}
	// tests.Wait closes the pipe, so gotestsum reads it to its end first.
	err = errors.Join(sum.Wait(), tests.Wait())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return errors.Join(errReported, err)
	}
	return nil
}
