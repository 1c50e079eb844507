package proof

import (
	"errors"
	"fmt"
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

// upstreamTests runs Kubernetes' own tests of every package that the tree's commits touch.
func upstreamTests(c *check) error {
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
	onStock, err := c.rerun(stock.Dir, without(failingTests(cases), own))
	for i, test := range cases {
		if failed(test) && slices.ContainsFunc(onStock, func(s junit.Case) bool {
			return failed(s) && s.Name != "" && s.ClassName == test.ClassName && s.Name == test.Name
		}) {
			cases[i] = junit.Case{ClassName: test.ClassName, Name: test.Name, Skipped: &junit.Message{Message: "fails on the stock release too, on this host"}}
		}
	}
	return cases, err
}

// integrationTest is what the patches add to the release's integration tests of pods.
const integrationTest = "test/integration/pods/environment_test.go"

// integrationTests runs it in the tree, on API servers that it starts, with the etcd of the node image.
func integrationTests(c *check) error {
	t := built.value.Tree
	if err := requireIntegrationTest(t); err != nil {
		return err
	}
	etcd, err := etcdProgram()
	if err != nil {
		return err
	}
	// Without paths in the binary, the API server's test package finds its own folder below these.
	dir := c.TempDir()
	module := filepath.Join(dir, "src", "k8s.io", "kubernetes")
	if err := errors.Join(
		os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.Symlink(etcd, filepath.Join(dir, "bin", "etcd")),
		os.MkdirAll(filepath.Dir(module), 0o755), os.Symlink(t.Dir, module),
	); err != nil {
		return err
	}
	env := append([]string{"TEST_SRCDIR=" + dir, "TEST_WORKSPACE=src", "PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")}, treeEnv...)
	return c.countGoTest(t.Dir, env, "-run=^TestEnvironmentGates$", "./"+filepath.Dir(integrationTest))
}

// requireIntegrationTest returns an error if t lacks the test. It is skipped on minors where the API of env
// files is upstream's: no gate of the patches decides there on what is stored.
func requireIntegrationTest(t *source.Tree) error {
	if upstream, err := hasUpstreamEnvFiles(t.Series.Name); err != nil {
		return err
	} else if upstream {
		return skipped(t.Series.Name + " has none")
	}
	_, err := os.Stat(filepath.Join(t.Dir, integrationTest))
	return err
}

func TestIntegrationTestIsRequired(t *testing.T) {
	tree := &source.Tree{Dir: t.TempDir()}
	for minor, want := range map[string]string{"v1.29": "no such file", "v1.33": "no such file", "v1.34": "v1.34 has none"} {
		tree.Series = series.Series{Name: minor}
		err := requireIntegrationTest(tree)
		testutil.CheckError(t, err, want)
		if errors.As(err, new(skipped)) != (minor == "v1.34") {
			t.Errorf("%s: %v", minor, err)
		}
	}
	file := filepath.Join(tree.Dir, integrationTest)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	tree.Series = series.Series{Name: "v1.33"}
	testutil.CheckError(t, requireIntegrationTest(tree), "")
}
