package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// GoTest runs tests with gotestsum, which reports as JUnit.
type GoTest struct {
	Layout layout.Layout
	Name   string // of the report
	Dir    string // where go runs
	Env    []string
	// Flags go to go test, the packages among them.
	Flags []string
	// Packages, if set, are given to gotestsum, which then runs failed tests once
	// more: for suites that are known to flake.
	Packages []string
}

// errNoTest is what GoTest.Run returns for packages that compile and have no test.
var errNoTest = errors.New("no test ran: go test found none")

// Run returns every test that ran. Failed tests are no error: only what keeps
// tests from being counted is.
func (g GoTest) Run(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	if len(g.Flags) == 0 {
		return nil, fmt.Errorf("%s names no package to test", g.Name)
	}
	tool, err := g.tool(ctx)
	if err != nil {
		return nil, err
	}
	report := filepath.Join(g.Layout.Output(), "verify", g.Name+".xml")
	if err := os.MkdirAll(filepath.Dir(report), 0o755); err != nil {
		return nil, err
	}
	if err := os.Remove(report); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	args := []string{"--junitfile", report, "--format", "pkgname", "--hide-summary=output,skipped"}
	if len(g.Packages) > 0 {
		args = append(args, "--rerun-fails=1", "--rerun-fails-max-failures=20", "--packages="+strings.Join(g.Packages, " "))
	}
	args = append(append(args, "--"), g.Flags...)
	runErr := run.Command(ctx, tool, args...).Dir(g.Dir).Env(g.Env...).Log(step.Log()).Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	cases, err := junit.Read(report)
	if err != nil {
		return nil, errors.Join(runErr, err)
	}
	cases = lastRuns(cases)
	counts := junit.Count(cases)
	switch {
	case counts.Total() == 0 && runErr == nil:
		return nil, errNoTest
	case counts.Total() == 0:
		return nil, fmt.Errorf("no test ran: %w", runErr)
	case runErr != nil && counts.Failed == 0:
		// A package that does not compile has no failed test of its own.
		return cases, runErr
	}
	return cases, nil
}

// lastRuns keeps the last run of every test: one that failed and then passed when
// it was run again has passed.
func lastRuns(cases []junit.Case) []junit.Case {
	at := map[string]int{}
	var last []junit.Case
	for _, c := range cases {
		key := c.ClassName + "\x00" + c.Name
		if i, ok := at[key]; ok {
			last[i] = c
			continue
		}
		at[key] = len(last)
		last = append(last, c)
	}
	return last
}

// tool builds gotestsum from the version in our go.mod, for use in any module.
func (g GoTest) tool(ctx context.Context) (string, error) {
	path := filepath.Join(g.Layout.Cache("tools"), "gotestsum")
	return path, run.Command(ctx, "go", "build", "-o", path, "gotest.tools/gotestsum").Dir(g.Layout.Root).Run()
}

// isSuite says whether a package is a suite, not what suites share.
func isSuite(pkg string) bool {
	return strings.Contains(pkg, "/test/e2e/") && !strings.Contains(pkg, "/test/e2e/internal/")
}

// Unit runs the unit tests of this module: every package but the suites, which
// need a cluster.
func Unit(l layout.Layout) Check {
	return Check{Name: "unit tests", Group: "unit", Run: func(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
		out, err := run.Command(ctx, "go", "list", "./...").Dir(l.Root).Output()
		if err != nil {
			return nil, err
		}
		packages := slices.DeleteFunc(strings.Fields(out), isSuite)
		return GoTest{Layout: l, Name: "unit", Dir: l.Root, Flags: packages}.Run(ctx, step)
	}}
}
