package proof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/gotestsum/testjson"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/run"
)

// treeEnv is the environment of go commands in a tree: a module of its own, with the flags of the
// builds, so that all share the build cache.
var treeEnv = []string{"GOWORK=off", "GOFLAGS=-mod=readonly -trimpath", "CGO_ENABLED=0"}

// errNoTest is the error of packages that compile but have no test.
var errNoTest = errors.New("no test ran: go test found none")

// testCleanUp is how long tests may take after Ctrl-C to delete their clusters. podenv gives the
// proofs more time.
const testCleanUp = 2 * time.Minute

// goTest runs go test with args in dir and returns every test that ran. Failed tests are not an
// error, only what keeps tests from being counted. After Ctrl-C, go test waits for its tests.
// SIGTERM would end it at once, and the tests would get SIGPIPE when they print.
func goTest(ctx context.Context, log io.Writer, dir string, env []string, args ...string) ([]junit.Case, error) {
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run.Command(ctx, "go", append([]string{"test", "-json"}, args...)...).Dir(dir).Env(env...).Log(writer).Interruptible(testCleanUp).Run()
		writer.Close()
		ended <- err
	}()
	ran, err := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: reader, Handler: testLog{log}, IgnoreNonJSONOutputLines: true})
	reader.Close() // ends go test if its output is not read to the end
	runErr := <-ended
	cases := casesOf(ran)
	switch counts := junit.Count(cases); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case counts.Total() == 0 && runErr == nil:
		return nil, errNoTest
	case runErr != nil && counts.Failed == 0:
		return cases, runErr
	}
	return cases, nil
}

// testLog writes the results of packages and the output of failed tests to a log.
type testLog struct{ w io.Writer }

func (l testLog) Event(e testjson.TestEvent, ran *testjson.Execution) error {
	text := ""
	switch {
	case e.Action == testjson.ActionBuild, e.Action == testjson.ActionOutput && e.PackageEvent():
		text = e.Output
	case e.Action == testjson.ActionFail && !e.PackageEvent():
		p := ran.Package(e.Package)
		text = strings.Join(p.OutputLines(p.LastFailedByName(e.Test)), "")
	}
	_, err := io.WriteString(l.w, text)
	return err
}

func (l testLog) Err(text string) error {
	_, err := fmt.Fprintln(l.w, text)
	return err
}

// casesOf lists the tests of all packages. A package that fails without a failed test, because it
// does not compile or panics, is a failed test without a name.
func casesOf(ran *testjson.Execution) []junit.Case {
	var cases []junit.Case
	add := func(tc testjson.TestCase, failure, skip *junit.Message) {
		cases = append(cases, junit.Case{ClassName: tc.Package, Name: tc.Test.Name(), Seconds: tc.Elapsed.Seconds(), Failure: failure, Skipped: skip})
	}
	output := func(tc testjson.TestCase) *junit.Message {
		return &junit.Message{Text: strings.Join(ran.OutputLines(tc), "")}
	}
	for _, name := range ran.Packages() {
		for _, tc := range ran.Package(name).Passed {
			add(tc, nil, nil)
		}
	}
	for _, tc := range ran.Failed() {
		m := output(tc)
		if tc.Test == "" {
			m.Text += strings.Join(ran.Errors(), "")
		}
		add(tc, m, nil)
	}
	for _, tc := range ran.Skipped() {
		add(tc, nil, &junit.Message{Message: output(tc).Gist()})
	}
	return cases
}

func failed(c junit.Case) bool { return c.Failure != nil || c.Error != nil }

// failingTests lists the top-level tests that failed, by package. A package that does not
// compile has none.
func failingTests(cases []junit.Case) map[string][]string {
	failing := map[string][]string{}
	for _, c := range cases {
		if name, _, _ := strings.Cut(c.Name, "/"); failed(c) && name != "" && !slices.Contains(failing[c.ClassName], name) {
			failing[c.ClassName] = append(failing[c.ClassName], name)
		}
	}
	return failing
}

// rerun runs the failed tests of cases again, in the tree at dir, and returns the results by package
// and name.
func (c *check) rerun(dir string, cases []junit.Case) (map[[2]string]junit.Case, error) {
	results := map[[2]string]junit.Case{}
	for pkg, names := range failingTests(cases) {
		c.step.Now("%s again in %s", pkg, filepath.Base(dir))
		ran, err := goTest(c.ctx, c.step.Log(), dir, treeEnv, "-timeout=20m", "-count=1", "-run=^("+strings.Join(names, "|")+")$", pkg)
		if err != nil {
			return nil, fmt.Errorf("running the failed tests of %s again in %s: %w", pkg, dir, err)
		}
		for _, test := range ran {
			results[[2]string{test.ClassName, test.Name}] = test
		}
	}
	return results, nil
}

// maxFlakes is the largest number of failed tests that are run again as possible flakes.
const maxFlakes = 20

// upstreamTestsOf runs the release's own tests of packages in the tree at dir. A failed test that
// passes when it runs again has passed: some are known to flake. Integration tests are only
// compiled, because they need an etcd in PATH.
func (c *check) upstreamTestsOf(dir string, packages []string) ([]junit.Case, error) {
	isIntegration := func(pkg string) bool { return strings.HasPrefix(pkg, "k8s.io/kubernetes/test/integration/") }
	integration := slices.DeleteFunc(slices.Clone(packages), func(pkg string) bool { return !isIntegration(pkg) })
	packages = slices.DeleteFunc(slices.Clone(packages), isIntegration)
	if len(integration) > 0 {
		vet := c.command("go", append([]string{"vet"}, integration...)...).Dir(dir).Env(treeEnv...)
		if err := vet.Run(); err != nil || len(packages) == 0 {
			return nil, err
		}
	}
	c.step.Now("%d packages", len(packages))
	cases, err := goTest(c.ctx, c.step.Log(), dir, treeEnv, append([]string{"-timeout=20m"}, packages...)...)
	if n := junit.Count(cases).Failed; err != nil || n == 0 || n > maxFlakes {
		return cases, err
	}
	results, err := c.rerun(dir, cases)
	if err != nil {
		return nil, err
	}
	for i, test := range cases {
		if second, ran := results[[2]string{test.ClassName, test.Name}]; ran {
			cases[i] = second
		}
	}
	return cases, nil
}

func unitTests(c *check) error {
	out, err := c.command("go", "list", "./...").Output()
	if err != nil {
		return err
	}
	packages := slices.DeleteFunc(strings.Fields(out), isSuite)
	return c.countGoTest(repo.Root, nil, packages...)
}

// isSuite reports whether a package is a suite: what suites share is not.
func isSuite(pkg string) bool {
	return strings.Contains(pkg, "/test/e2e/") && !strings.Contains(pkg, "/test/e2e/internal/")
}

// countGoTest runs go test and adds its tests as parts of the check.
func (c *check) countGoTest(dir string, env []string, args ...string) error {
	cases, err := goTest(c.ctx, c.step.Log(), dir, env, args...)
	c.count(cases)
	return err
}

func TestIsSuite(t *testing.T) {
	for pkg, want := range map[string]bool{
		"podenv.dev/test/e2e/envfiles":       true,
		"podenv.dev/test/e2e/internal/suite": false,
		"podenv.dev/test/corpus":             false,
		"podenv.dev/hack/internal/suite":     false,
	} {
		if got := isSuite(pkg); got != want {
			t.Errorf("isSuite(%q) = %t, want %t", pkg, got, want)
		}
	}
}
