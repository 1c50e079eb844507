package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/verify"
)

// testCluster keeps tests away from the cluster that a person works with.
const testCluster = "podenv-test"

func newTest(a *app) *cobra.Command {
	var only []string
	var keep, full bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Run everything that proves the project, and print one summary",
		Long: `test sets up what it needs, as up does, and runs the linters, the unit tests, the
proofs of the patch series, Kubernetes' own tests of the packages that the patches
touch, the proofs of the node image with plain kind, and the suites on a cluster
of its own, which it deletes.

The last line is "N passed, N failed, N skipped". The exit status is 0 only where
something passed and nothing failed. Reports in JUnit format go to _output/junit.

What compiles, what has clusters of its own and the suites run beside one another.

Groups for --only: lint, unit, source, upstream, image, e2e, and upgrade, which moves
the cluster up and down between builds and gates. The kubelets there are the series'
own and that of the minor before, or with --full all that the version skew policy
allows; --full also runs the specs that are labelled Slow, and presses Ctrl-C in each
step of podenv up.`,
		Example: `  podenv test
  podenv test --only lint,unit
  podenv test --only e2e --keep     # leave the cluster for a look
  podenv test --only e2e,upgrade --full    # all suites, and all of them`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.pipeline()
			if err != nil {
				return err
			}
			// As much as operators run with when they look for something: a suite looks
			// there for values that must not be logged.
			p.Verbosity = 4
			t := &testRun{app: a, p: p, keep: keep, full: full}
			checks, err := choose(t.checks(), only)
			if err != nil {
				return err
			}
			return t.run(cmd.Context(), checks)
		},
	}
	cmd.Flags().StringSliceVar(&only, "only", nil, "run only these groups, and what they need")
	cmd.Flags().BoolVar(&full, "full", false, "every older kubelet, and the slow specs of upgrade and downgrade, too")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the test cluster")
	return cmd
}

// choose keeps the checks of the groups named, and those that they need.
func choose(checks []verify.Check, groups []string) ([]verify.Check, error) {
	if len(groups) == 0 {
		return checks, nil
	}
	wanted := map[string]bool{}
	known := map[string]bool{}
	// What a check needs stands before it, so one pass from the end finds all.
	for _, c := range slices.Backward(checks) {
		known[c.Group] = true
		if slices.Contains(groups, c.Group) || wanted[c.Name] {
			wanted[c.Name] = true
			for _, need := range c.Needs {
				wanted[need] = true
			}
		}
	}
	for _, g := range groups {
		if !known[g] {
			return nil, &usageError{fmt.Errorf("--only %q: no such group, see podenv test --help", g)}
		}
	}
	return slices.DeleteFunc(slices.Clone(checks), func(c verify.Check) bool { return !wanted[c.Name] }), nil
}

// testRun is one run of podenv test; its checks hand results to those after them.
type testRun struct {
	app  *app
	p    *pipeline.Pipeline
	keep bool
	full bool

	result  *pipeline.Result
	cluster *cluster.Cluster
}

func (t *testRun) run(ctx context.Context, checks []verify.Check) error {
	junitDir := t.app.layout.JUnit()
	runner := &verify.Runner{Reporter: t.p.Reporter, JUnit: junitDir}
	start := time.Now()
	results, err := runner.Run(ctx, checks)
	if t.cluster != nil && !t.keep {
		// The context may have ended with Ctrl-C; the cluster goes all the same.
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		step := t.p.Reporter.Step("delete cluster " + testCluster)
		if downErr := step.End(t.cluster.Delete(clean, step)); downErr != nil && err == nil {
			err = downErr
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(t.app.out, "\nTook %s.", time.Since(start).Round(time.Second))
	sum := verify.Summary(t.app.out, results, junitDir)
	if sum.Failed > 0 || sum.Passed == 0 {
		return errReported
	}
	return nil
}
