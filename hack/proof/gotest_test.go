package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/gotestsum/testjson"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
)

// treeEnv is the environment of go commands in a tree: a module of its own, with the flags of the
// builds, so that all share the build cache.
var treeEnv = []string{"GOWORK=off", "GOFLAGS=-mod=readonly -trimpath", "CGO_ENABLED=0"}

// errNoTest is the error of packages that compile but have no test, or skip all.
var errNoTest = errors.New("no test ran: go test found none, or all were skipped")

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
	case counts.Passed+counts.Failed == 0 && runErr == nil:
		return cases, errNoTest
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

// testsIn lists the tests that packages of the module in dir declare, by package. Their names match
// pattern.
func testsIn(ctx context.Context, dir string, env []string, pattern string, packages ...string) (map[string][]string, error) {
	out, err := run.Command(ctx, "go", append([]string{"test", "-json", "-list=" + pattern}, packages...)...).Dir(dir).Env(env...).Output()
	if err != nil {
		return nil, err
	}
	names, tests := regexp.MustCompile(pattern), map[string][]string{}
	for line := range strings.Lines(out) {
		var event struct{ Package, Output string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, err
		}
		if name := strings.TrimSpace(event.Output); names.MatchString(name) {
			tests[event.Package] = append(tests[event.Package], name)
		}
	}
	return tests, nil
}

// rerun runs tests, by package, again in the tree at dir.
func (c *check) rerun(dir string, env []string, tests map[string][]string) ([]junit.Case, error) {
	var results []junit.Case
	for pkg, names := range tests {
		c.step.Now("%s again in %s", pkg, filepath.Base(dir))
		ran, err := goTest(c.ctx, c.step.Log(), dir, env, "-timeout=20m", "-count=1", "-run=^("+strings.Join(names, "|")+")$", pkg)
		if err != nil {
			return nil, fmt.Errorf("running tests of %s again in %s: %w", pkg, dir, err)
		}
		results = append(results, ran...)
	}
	return results, nil
}

// maxFlakes is the largest number of failed tests, without subtests, that are run again as possible flakes.
const maxFlakes = 20

// upstreamTestsOf runs the tests of packages in dir, which has the tree t or some of its commits. A
// failed test of the release that passes when it runs again has passed, because some are known to
// flake: it is printed. A test of ours has no second run. A test that has not run has failed.
func (c *check) upstreamTestsOf(t *source.Tree, dir string, packages []string) (cases []junit.Case, err error) {
	integration := slices.DeleteFunc(slices.Clone(packages), func(pkg string) bool { return !isIntegration(pkg) })
	if len(integration) > 0 {
		if err := c.command("go", append([]string{"vet"}, integration...)...).Dir(dir).Env(treeEnv...).Run(); err != nil {
			return nil, err
		}
		env, err := c.integrationEnv(dir)
		if err != nil {
			return nil, err
		}
		if cases, err = c.testsOf(t, dir, env, integration); err != nil {
			return nil, err
		}
	}
	packages = slices.DeleteFunc(slices.Clone(packages), isIntegration)
	if len(packages) == 0 {
		return cases, nil
	}
	units, err := c.testsOf(t, dir, treeEnv, packages)
	return append(cases, units...), err
}

func isIntegration(pkg string) bool {
	return strings.HasPrefix(pkg, "k8s.io/kubernetes/test/integration/")
}

// integrationEnv is the environment of the integration tests in dir: they start API servers, with the etcd of
// the node image. Go's cache has no results of them, since it has a new folder each time.
func (c *check) integrationEnv(dir string) ([]string, error) {
	etcd, err := nodeimage.Etcd(c.ctx, repo, dir, c.step)
	if err != nil {
		return nil, err
	}
	// Without paths in the binary, the API server's test package finds its own folder below these.
	scratch := c.TempDir()
	module := filepath.Join(scratch, "src", "k8s.io", "kubernetes")
	if err := errors.Join(
		os.Mkdir(filepath.Join(scratch, "bin"), 0o755), os.Symlink(etcd, filepath.Join(scratch, "bin", "etcd")),
		os.MkdirAll(filepath.Dir(module), 0o755), os.Symlink(dir, module),
	); err != nil {
		return nil, err
	}
	return append([]string{"TEST_SRCDIR=" + scratch, "TEST_WORKSPACE=src", "PATH=" + filepath.Join(scratch, "bin") + ":" + os.Getenv("PATH")}, treeEnv...), nil
}

// testsOf is upstreamTestsOf in one environment.
func (c *check) testsOf(t *source.Tree, dir string, env, packages []string) ([]junit.Case, error) {
	c.step.Now("%d packages", len(packages))
	args := []string{"-timeout=20m"}
	if c.uncached {
		args = append(args, "-count=1")
	}
	cases, err := goTest(c.ctx, c.step.Log(), dir, env, append(args, packages...)...)
	failing := failingTests(cases) // none where packages do not compile or start
	if err != nil || len(failing) == 0 {
		return cases, err
	}
	declared, err := testsIn(c.ctx, dir, env, `^(Test|Fuzz|Example)\w*$`, slices.Sorted(maps.Keys(failing))...)
	if err != nil {
		return nil, err
	}
	if len(slices.Concat(slices.Collect(maps.Values(failing))...)) <= maxFlakes {
		if cases, err = c.secondRun(t, dir, env, cases, declared); err != nil {
			return nil, err
		}
	}
	for pkg, names := range notRun(declared, cases) {
		for _, name := range names {
			cases = append(cases, junit.Case{ClassName: pkg, Name: name, Failure: &junit.Message{Text: "did not run: another test ended its package"}})
		}
	}
	return cases, nil
}

// secondRun runs failed tests of the release again, and the declared tests that did not run because
// another one of their package panicked.
func (c *check) secondRun(t *source.Tree, dir string, env []string, cases []junit.Case, declared map[string][]string) ([]junit.Case, error) {
	own, err := ownTests(c.ctx, t, dir)
	if err != nil {
		return nil, err
	}
	again := without(failingTests(cases), own)
	for pkg, names := range notRun(declared, cases) {
		again[pkg] = append(again[pkg], names...)
	}
	results, err := c.rerun(dir, env, again)
	if err != nil {
		return nil, err
	}
	cases, flaked := merge(cases, results)
	if len(flaked) > 0 {
		steps.Reporter.Print(fmt.Sprintf("        %d failed tests of the release passed when they ran again: %s", len(flaked), strings.Join(flaked, ", ")))
	}
	return cases, nil
}

// ownTests are the top-level tests in dir that the commits of t add or change: those with a line in the
// diff to the release.
func ownTests(ctx context.Context, t *source.Tree, dir string) (map[[2]string]bool, error) {
	release, _, err := t.Release(ctx)
	if err != nil {
		return nil, err
	}
	diff, err := gitrepo.Repo{Dir: dir}.Quiet(ctx, "diff", "--unified=0", "--no-renames", release, "--", "*_test.go")
	if err != nil {
		return nil, err
	}
	own, pkg := map[[2]string]bool{}, ""
	var tests map[string][2]int
	for line := range strings.Lines(diff) {
		if file, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); ok {
			pkg = t.Series.ImportPath(path.Dir(file))
			if tests, err = linesOfTests(filepath.Join(dir, file)); err != nil {
				return nil, err
			}
		} else if hunk := hunkHeader.FindStringSubmatch(line); hunk != nil {
			from, count := 0, 1
			fmt.Sscan(hunk[1], &from)  //nolint:errcheck // it is digits
			fmt.Sscan(hunk[2], &count) //nolint:errcheck // it is digits, or 1 is meant
			if count == 0 {            // lines are gone from behind this one
				from++
			}
			to := from + count - 1
			for name, lines := range tests {
				if from <= lines[1] && to >= lines[0] {
					own[[2]string{pkg, name}] = true
				}
			}
		}
	}
	return own, nil
}

// hunkHeader matches the line of a diff before the lines of a hunk, and where these are in the new file.
var hunkHeader = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)

// linesOfTests returns the first and the last line of each top-level test in a file.
func linesOfTests(file string) (map[string][2]int, error) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	tests := map[string][2]int{}
	for _, declared := range parsed.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
			tests[f.Name.Name] = [2]int{positions.Position(f.Pos()).Line, positions.Position(f.End()).Line}
		}
	}
	return tests, nil
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Example)`)

// without returns tests, by package, except for those in own.
func without(tests map[string][]string, own map[[2]string]bool) map[string][]string {
	rest := map[string][]string{}
	for pkg, names := range tests {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return own[[2]string{pkg, name}] })
		if len(names) > 0 {
			rest[pkg] = names
		}
	}
	return rest
}

// notRun returns the declared tests, by package, that have no result in cases.
func notRun(declared map[string][]string, cases []junit.Case) map[string][]string {
	ran := map[[2]string]bool{}
	for _, test := range cases {
		ran[[2]string{test.ClassName, test.Name}] = true
	}
	return without(declared, ran)
}

// merge replaces failed tests in cases by their second results, and adds the others. It returns the
// names of top-level tests that passed the second time.
func merge(cases, second []junit.Case) (all []junit.Case, flaked []string) {
	all = slices.Clone(cases)
	for _, result := range second {
		at := slices.IndexFunc(all, func(test junit.Case) bool {
			return test.ClassName == result.ClassName && test.Name == result.Name && result.Name != ""
		})
		switch {
		case at < 0:
			all = append(all, result)
		case failed(all[at]):
			if !failed(result) && !strings.Contains(result.Name, "/") {
				flaked = append(flaked, result.ClassName+" "+result.Name)
			}
			all[at] = result
		}
	}
	return all, flaked
}

func unitTests(c *check) error {
	out, err := c.command("go", "list", "./...").Output()
	if err != nil {
		return err
	}
	packages := slices.DeleteFunc(strings.Fields(out), isSuite)
	cases, err := c.unitCases(repo.Root, nil, os.Getuid() == 0, append([]string{"-vet=off"}, packages...)...) // lint vets
	c.count(cases)
	return err
}

// unitCases runs the unit tests of packages. Results come from Go's cache: the tests read only this module.
// If root runs them, which may do all that they need, a skipped one has failed, except for unitSkips. Go's
// cache may have it from before a package of the host was installed.
func (c *check) unitCases(dir string, env []string, root bool, packages ...string) ([]junit.Case, error) {
	cases, err := goTest(c.ctx, c.step.Log(), dir, env, packages...)
	if root && err == nil && refuseSkips(cases, unitSkips) {
		cases, err = goTest(c.ctx, c.step.Log(), dir, env, append([]string{"-count=1"}, packages...)...)
		refuseSkips(cases, unitSkips)
	}
	return cases, err
}

// unitSkips matches the reasons for which root may skip unit tests: they run in another check, or measure, or
// are for a kernel, file system or engine that this host does not have.
var unitSkips = regexp.MustCompile(`without -(podenv|kubeconfig)|PODENV_(TREE|NODE_IMAGE) |KUBE_APISERVER and ETCD |PODS is not a number` +
	`|only as the child process|no image of busybox in _output/cache|NOT TESTED IN A BROWSER|needs an engine that serves` +
	`|unknown filesystem type|file system for temporary files|overlay cannot be mounted: invalid argument|userfaultfd: `)

// isSuite reports whether a package is a suite: what suites share is not.
func isSuite(pkg string) bool {
	return strings.Contains(pkg, "/test/e2e/") && !strings.Contains(pkg, "/test/e2e/internal/")
}

// countGoTest runs go test and adds its tests as parts of the check, none of which may be skipped. It
// takes no result from Go's cache, which does not know about files outside of the module.
func (c *check) countGoTest(dir string, env []string, args ...string) error {
	cases, err := goTest(c.ctx, c.step.Log(), dir, env, append([]string{"-count=1"}, args...)...)
	refuseSkips(cases, nil)
	c.count(cases)
	return err
}

// refuseSkips turns tests that were skipped into failures, except for those whose reason matches allowed, and
// reports whether there was one.
func refuseSkips(cases []junit.Case, allowed *regexp.Regexp) (refused bool) {
	for i, test := range cases {
		if test.Skipped != nil && (allowed == nil || !allowed.MatchString(test.Skipped.Message)) {
			cases[i].Skipped, cases[i].Failure = nil, &junit.Message{Message: "must run, and was skipped: " + test.Skipped.Message}
			refused = true
		}
	}
	return refused
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
