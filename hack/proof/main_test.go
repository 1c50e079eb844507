package proof

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"podenv.dev/hack/internal/interrupt"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

var (
	seriesName = flag.String("podenv.series", "", "the Kubernetes minor that is proven; without it no proof runs")
	onlyGroups = flag.String("podenv.only", strings.Join(Groups, ","), "run only these groups")
	full       = flag.Bool("podenv.full", false, "every older kubelet, the slow specs and the long checks, too")
	keep       = flag.Bool("podenv.keep", false, "keep the test cluster")
	podenv     = flag.String("podenv.cli", "", "the podenv that suites operate nodes with")
	plain      = flag.Bool("podenv.plain", false, "print plain lines")
)

// What all checks share.
var (
	ctx    context.Context // it ends with Ctrl-C
	groups []string
	repo   layout.Layout
	steps  *pipeline.Pipeline
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(asLinter); dir != "" {
		runLinter(dir)
	}
	flag.Parse()
	if *seriesName == "" {
		os.Exit(m.Run())
	}
	os.Exit(prove(m))
}

func prove(m *testing.M) int {
	// A second signal or a closed pipe does not keep the checks from cleaning up. podenv kills
	// them if that takes too long.
	var stop context.CancelFunc
	ctx, stop = interrupt.Context(context.Background())
	defer stop()
	groups = strings.Split(*onlyGroups, ",")
	var err error
	if repo, err = layout.Find("."); err == nil {
		steps, err = newPipeline(*seriesName)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if *fuzzList {
		return printFuzzTargets()
	}
	status := m.Run()
	if status == 0 && ctx.Err() != nil {
		return interrupted // what was skipped has not passed
	}
	return status
}

// newPipeline returns the steps for a series. Components log at a verbosity that operators use for
// debugging, because a suite searches the logs for values that must not be there.
func newPipeline(name string) (*pipeline.Pipeline, error) {
	s, err := series.Load(repo, name)
	if err != nil {
		return nil, err
	}
	// Once tests run, os.Stderr belongs to the results of package testing.
	r := progress.To(os.Stderr, *plain, repo.Logs())
	if steps != nil {
		r = steps.Reporter
	}
	return &pipeline.Pipeline{Layout: repo, Series: s, Reporter: r, Verbosity: 4, Temporary: true}, nil
}

// requireSeries skips a test that podenv test runs.
func requireSeries(t *testing.T) {
	t.Helper()
	if *seriesName == "" {
		t.Skip("without -podenv.series: podenv test runs the proofs")
	}
}
