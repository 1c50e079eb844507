package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/htmlreport"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/suite"
)

// e2eProcs is how many specs run at a time. Specs mostly wait for the kubelet's back-off, so
// it may exceed the number of cores.
const e2eProcs = 4

func newE2E(a *app) *cobra.Command {
	var o suite.Options
	cmd := &cobra.Command{
		Use:   "e2e",
		Short: "Run the end-to-end suites on the cluster, or on any with --kubeconfig",
		Long: `e2e runs the Ginkgo suites of test/e2e. Without --kubeconfig they run on podenv's
cluster. On any other cluster the images of the test pods must be there first; the
suite names those that are missing. A page with the results is in
_output/report/index.html.

Exit status: 0 only where a spec ran and none failed.`,
		Example: `  podenv e2e
  podenv e2e --focus 'row 3'
  podenv e2e --focus 'no environment is a mix' --starts 1000   # more starts find rarer mixes
  podenv e2e --suite tekton              # after podenv tekton
  podenv e2e --suite upgrade --procs 1   # operates nodes: podenv's own clusters only
  podenv e2e --suite upgrade --procs 1 --focus 'Version skew' --older v1.30,v1.31,v1.32
  podenv e2e --suite upgrade --procs 1 --focus 'newer minors' --newer v1.34,v1.35,v1.36,v1.37
  podenv e2e --kubeconfig ~/.kube/config --context other --label-filter 'Feature:EnvFiles'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if err := o.Validate(a.layout); err != nil {
				return &usageError{err}
			}
			if o.Kubeconfig == "" {
				if err := a.ownCluster(ctx, &o); err != nil {
					return err
				}
			} else if o.Kubectl == "" {
				fmt.Fprintln(a.errs, "podenv: specs of kubectl are skipped: --kubectl FILE names the client that they test")
			}
			return a.reported(func(report *htmlreport.Run) error {
				step := a.reporter().Step("e2e " + o.Suite)
				result, err := suite.Run(ctx, a.layout, o, step)
				err = step.End(err)
				if result.JUnit != "" {
					fmt.Fprintf(a.out, "%sJUnit report: %s\n%s\n", result.Report, result.JUnit, result.Counts)
					err = errors.Join(err, addIfThere(report.AddGinkgo, result.Ginkgo))
				}
				return err
			})
		},
	}
	a.nameFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "the cluster to run on (default podenv's own, see --name)")
	flags.StringVar(&o.Context, "context", "", "the kubeconfig's context (default its current one)")
	flags.StringVar(&o.Suite, "suite", "envfiles", "the folder below test/e2e")
	flags.StringVar(&o.Focus, "focus", "", "run only specs whose name matches this regular expression")
	flags.StringVar(&o.LabelFilter, "label-filter", "", "run only specs that this Ginkgo label expression selects")
	flags.DurationVar(&o.Timeout, "timeout", time.Hour, "how long all specs may take")
	flags.IntVar(&o.Procs, "procs", e2eProcs, "how many specs run at a time")
	flags.StringVar(&o.Kubectl, "kubectl", "", "the kubectl (a `binary`) under test; its specs are skipped without one (default the series' own; with --kubeconfig none)")
	flags.StringVar(&o.JUnit, "junit", "", "`file` for the results, as JUnit XML (default _output/e2e/<suite>.xml)")
	flags.StringSliceVar(&o.Older, "older", nil, "older `minors`, separated by commas, whose stock kubelets the suite upgrade goes to (default the minor before)")
	flags.StringSliceVar(&o.Newer, "newer", nil, "newer `minors`, separated by commas, that the suite upgrade takes the cluster to, one after the other (default the minor after)")
	flags.IntVar(&o.Walks, "walks", 1, "`how often` the soak of the suite upgrade takes the kubelet up and down")
	flags.IntVar(&o.Starts, "starts", 50, "`how many` containers start beside each kind of writer in the suite envfiles")
	return cmd
}

// olderMinors returns the minors whose stock kubelets run with the series' API server: the
// requested ones or, by default, the previous minor.
func olderMinors(l layout.Layout, s series.Series, requested []string) ([]string, error) {
	allowed := s.Older(l, series.SupportedSkew)
	for _, name := range requested {
		if !slices.Contains(allowed, name) {
			return nil, &usageError{fmt.Errorf("--older %s: no kubelet of it may run beside a %s API server, or patches/ has no such series: choose from %s",
				name, s.Name, cmp.Or(strings.Join(allowed, ", "), "none"))}
		}
	}
	if len(requested) > 0 {
		return requested, nil
	}
	return s.Older(l, 1), nil
}

// newerMinors returns the minors that the cluster is upgraded to: the requested ones or, by
// default, the next minor.
func newerMinors(l layout.Layout, s series.Series, requested []string) ([]string, error) {
	allowed := s.Newer(l)
	if n := len(requested); n > len(allowed) || !slices.Equal(requested, allowed[:n]) {
		return nil, &usageError{fmt.Errorf("--newer %s: the control plane of %s goes on one minor at a time: name the first ones of %s",
			strings.Join(requested, ","), s.Name, cmp.Or(strings.Join(allowed, ","), "none, as patches/ has no newer release"))}
	}
	return allowed[:min(len(allowed), max(1, len(requested)))], nil
}

// ownCluster points o at podenv's cluster.
func (a *app) ownCluster(ctx context.Context, o *suite.Options) error {
	s, err := series.Load(a.layout, a.series)
	if err != nil {
		return err
	}
	if o.Older, err = olderMinors(a.layout, s, o.Older); err != nil {
		return err
	}
	if o.Newer, err = newerMinors(a.layout, s, o.Newer); err != nil {
		return err
	}
	c, err := a.cluster(ctx)
	if err != nil {
		return err
	}
	o.Kubeconfig = c.Kubeconfig()
	client, err := suite.Connect(ctx, o.Kubeconfig, "")
	if err == nil {
		_, err = cluster.OfMinor(client, s.Name)
	}
	if err != nil {
		return err
	}
	o.RequireGates = featuregates.OfSuite(o.Suite)
	o.Cluster, o.Minor = c.Name(), s.Name
	if o.Podenv, err = os.Executable(); err != nil {
		return err
	}
	o.Kubectl, err = kubectlOf(a.layout, s, o.Kubectl)
	return err
}

// kubectlOf returns the kubectl that the specs test on podenv's own cluster: the requested one or that
// of the series. Without one, the specs would be skipped, and a run of another series would pass.
func kubectlOf(l layout.Layout, s series.Series, requested string) (string, error) {
	kubectl := cmp.Or(requested, filepath.Join(l.Build(s.Name), "bin", "kubectl"))
	if _, err := os.Stat(kubectl); err != nil {
		return "", remedy.New(fmt.Errorf("kubectl of %s: %w", s.Name, err),
			"if the cluster runs another minor, name it with --series or SERIES, otherwise `podenv build --series "+s.Name+"`; --kubectl FILE names another client")
	}
	return kubectl, nil
}
