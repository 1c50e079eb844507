package proof

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/series"
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
	if err := requireIntegrationTest(built.value.Tree); err != nil {
		return err
	}
	cases, err := c.touchedTests(built.value.Tree)
	c.count(cases)
	return err
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
const integrationTest = "test/integration/pods/environment_test.go"

// requireIntegrationTest returns an error if t lacks the test. Minors where the API of env files is upstream's
// have none: no gate of the patches decides there on what is stored.
func requireIntegrationTest(t *source.Tree) error {
	upstream, err := hasUpstreamEnvFiles(t.Series.Name)
	if err == nil && !upstream {
		_, err = os.Stat(filepath.Join(t.Dir, integrationTest))
	}
	return err
}

func TestIntegrationTestIsRequired(t *testing.T) {
	tree := &source.Tree{Dir: t.TempDir()}
	for minor, want := range map[string]string{"v1.29": "no such file", "v1.33": "no such file", "v1.34": ""} {
		tree.Series = series.Series{Name: minor}
		testutil.CheckError(t, requireIntegrationTest(tree), want)
	}
	file := filepath.Join(tree.Dir, integrationTest)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	tree.Series = series.Series{Name: "v1.33"}
	testutil.CheckError(t, requireIntegrationTest(tree), "")
}
