package main

import (
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
)

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
