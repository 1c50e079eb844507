package proof

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/testutil"
)

// acceptedUpstream validates the pods of test/corpus with the first upstream release that has the
// field: every pod that this branch accepts must be valid there, so that clusters can upgrade. That
// release is in a module of its own. The suite does the same on this branch's API server.
func acceptedUpstream(c *check) error {
	return c.countGoTest(filepath.Join(repo.Root, "test", "upstream", "v1.34"), []string{"GOWORK=off", "GOFLAGS=-mod=readonly"}, "./...")
}

// upstreamTests runs Kubernetes' own tests of every package that the tree's commits touch, integration tests
// included.
func upstreamTests(c *check) error {
	cases, err := c.touchedTests(built.value.Tree)
	c.count(cases)
	if err != nil {
		return err
	}
	return requireIntegrationTest(steps.Series.Name, cases)
}

// touchedTests runs the tests of the packages in which t differs from its release. Tests that also
// fail on the stock release count as skipped.
func (c *check) touchedTests(t *source.Tree) ([]junit.Case, error) {
	files, err := t.Changed(c.ctx)
	if err != nil {
		return nil, err
	}
	packages := t.Packages(files)
	if len(packages) == 0 {
		return nil, fmt.Errorf("the tree at %s does not differ from its release: are there patches?", t.Dir)
	}
	cases, err := c.upstreamTestsOf(t, t.Dir, packages)
	if err != nil || len(failingTests(cases)) == 0 {
		return cases, err
	}
	own, err := ownTests(c.ctx, t, t.Dir)
	if err != nil {
		return cases, err
	}
	stock, err := source.Assemble(c.ctx, repo, t.Series, source.Options{Stock: true}, nil)
	if err != nil {
		return cases, fmt.Errorf("comparing with the stock release: %w", err)
	}
	onStock, err := c.rerun(stock.Dir, treeEnv, alsoOnStock(cases, own))
	for i, test := range cases {
		if failed(test) && slices.ContainsFunc(onStock, func(s junit.Case) bool {
			return failed(s) && s.Name != "" && s.ClassName == test.ClassName && s.Name == test.Name
		}) {
			cases[i] = junit.Case{ClassName: test.ClassName, Name: test.Name, Skipped: &junit.Message{Message: "fails on the stock release too, on this host"}}
		}
	}
	return cases, err
}

// alsoOnStock are the tests that failed and run on the stock release, too, by package: those of the release that need no
// etcd.
func alsoOnStock(cases []junit.Case, own map[[2]string]bool) map[string][]string {
	failing := without(failingTests(cases), own)
	maps.DeleteFunc(failing, func(pkg string, _ []string) bool { return isIntegration(pkg) })
	return failing
}

func TestIntegrationTestsAndOursMustPass(t *testing.T) {
	failed := func(pkg, name string) junit.Case {
		return junit.Case{ClassName: pkg, Name: name, Failure: &junit.Message{}}
	}
	const pods = "k8s.io/kubernetes/test/integration/pods"
	got := alsoOnStock([]junit.Case{failed(pods, "TestPods"), failed("k8s.io/kubernetes/pkg/kubelet", "TestOurs"), failed("k8s.io/kubernetes/pkg/kubelet", "TestTheirs")},
		map[[2]string]bool{{"k8s.io/kubernetes/pkg/kubelet", "TestOurs"}: true})
	if len(got) != 1 || !slices.Equal(got["k8s.io/kubernetes/pkg/kubelet"], []string{"TestTheirs"}) {
		t.Errorf("with the stock release run %v", got)
	}
}

// integrationTest is what the patches add to the release's integration tests of pods.
var integrationTest = junit.Case{ClassName: "k8s.io/kubernetes/test/integration/pods", Name: "TestEnvironmentGates"}

// requireIntegrationTest returns an error if the test is not among cases, or was skipped. Minors where the API of env
// files is upstream's have none: no gate of the patches decides there on what is stored.
func requireIntegrationTest(minor string, cases []junit.Case) error {
	upstream, err := hasUpstreamEnvFiles(minor)
	if err != nil || upstream || slices.ContainsFunc(cases, func(test junit.Case) bool {
		return test.ClassName == integrationTest.ClassName && test.Name == integrationTest.Name && test.Skipped == nil
	}) {
		return err
	}
	return fmt.Errorf("%s of %s did not run", integrationTest.Name, integrationTest.ClassName)
}

func TestIntegrationTestIsRequired(t *testing.T) {
	left := integrationTest
	left.Skipped = &junit.Message{Message: "not today"}
	another := integrationTest
	another.Name = "TestPods"
	for _, minor := range []string{"v1.29", "v1.33"} {
		testutil.CheckError(t, requireIntegrationTest(minor, []junit.Case{another}), "did not run")
		testutil.CheckError(t, requireIntegrationTest(minor, []junit.Case{left}), "did not run")
		testutil.CheckError(t, requireIntegrationTest(minor, []junit.Case{another, integrationTest}), "")
	}
	testutil.CheckError(t, requireIntegrationTest("v1.34", nil), "")
}
