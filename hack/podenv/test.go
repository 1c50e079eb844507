package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/htmlreport"
	"podenv.dev/hack/proof"
)

func newTest(a *app) *cobra.Command {
	var only []string
	var keep, full bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Run the checks of docs/testing.md on one series, and print one summary",
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
of the minor before. Only by name: atlas, which takes a cluster by kubeadm through all
minors and back.

With --full, upgrade uses all kubelets that the version skew policy allows. --full also
runs the specs that are labelled Slow and the suite of Tekton, compares the generators
that a change reaches with all of them, and presses Ctrl-C in each step of podenv up.`,
		Example: `  podenv test
  podenv test --only lint,unit
  podenv test --only e2e --keep     # leave the cluster for a look
  podenv test --only e2e,upgrade --full    # all suites, and all of them`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkGroups(only, append(slices.Clone(proof.Groups), proof.Atlas)); err != nil {
				return err
			}
			podenv, err := os.Executable()
			if err != nil {
				return err
			}
			return a.reported(cmd, args, func(report *htmlreport.Run) error {
				events := eventsOf(filepath.Join(a.layout.JUnit(), "podenv.xml"))
				if err := os.Remove(events); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
				err := a.prove(cmd.Context(), "^Test(Compiling|Clusters|OwnClusters)$", "podenv", "-podenv.only="+strings.Join(only, ","),
					"-podenv.cli="+podenv, fmt.Sprintf("-podenv.full=%t", full), fmt.Sprintf("-podenv.keep=%t", keep))
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
	for _, name := range only {
		if !slices.Contains(groups, name) {
			return &usageError{fmt.Errorf("--only %q: no such group: choose from %s", name, strings.Join(groups, ", "))}
		}
	}
	return nil
}
