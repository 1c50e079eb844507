package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/series/report"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/testutil"
)

// TestSeries applies, generates, compiles and tests every series, or that of -test.run, and prints a
// table. It continues after a series that fails.
func TestSeries(t *testing.T) {
	requireSeries(t)
	var rows []verified
	for _, name := range series.Names(repo) {
		lane{t}.check("series "+name, "series", func(*check) {}, func(c *check) error {
			p, err := newPipeline(name)
			if err != nil {
				return err
			}
			row := verified{Series: name, Release: p.Series.Release}
			err = c.verify(p, &row)
			rows = append(rows, row)
			return err
		})
	}
	ofTekton, err := tektonSeries()
	if err != nil {
		t.Error(err)
	}
	for _, s := range ofTekton {
		lane{t}.check("series "+s.Name, "series", func(*check) {}, func(c *check) error {
			row := verified{Series: s.Name, Release: s.Release}
			err := c.verifyTekton(s, &row)
			rows = append(rows, row)
			return err
		})
	}
	if len(rows) == 0 && ctx.Err() == nil {
		t.Error("no series was verified")
	}
	var table strings.Builder
	if err := writeVerified(&table, rows); err != nil {
		t.Error(err)
	}
	steps.Reporter.Print("\n" + table.String())
}

// verify records in row how far the series got, and returns the error that stopped it.
func (c *check) verify(p *pipeline.Pipeline, row *verified) error {
	if err := p.Packages(c.ctx, fileSystems...); err != nil {
		return err
	}
	t, err := p.Tree(c.ctx, source.Options{})
	if err != nil {
		return err
	}
	row.Assembled = true
	if _, err := p.Binaries(c.ctx, t, pipeline.Host, build.Components); err != nil {
		return err
	}
	row.Compiled = true
	if err := c.verifyTests(t, row); err != nil {
		return err
	}
	if err := c.verifyFixes(p.Series); err != nil {
		return err
	}
	var none struct{}
	if err := c.once(t, "windows", &none, func() error { return kubeletForWindows(c, t) }); err != nil {
		return err
	}
	// The tree has what the generators made for the packages that its patches reach.
	if err := c.once(t, "generators", &none, func() error { return c.codegenTest(t, "TestAllGeneratorsMakeWhatATreeHas") }); err != nil {
		return err
	}
	if row.Report, err = report.Of(c.ctx, repo, p.Series); err != nil {
		return err
	}
	if report.Disagree([]report.Report{row.Report}) {
		return errors.New("its feature gates are not those of featuregates/: see podenv series")
	}
	return nil
}

// verifyTests runs the tests of the packages that the series of t touches, and counts them in row.
func (c *check) verifyTests(t *source.Tree, row *verified) error {
	return c.once(t, "tests", &row.Tests, func() error {
		cases, err := c.touchedTests(t)
		row.Tests = junit.Count(cases)
		c.count(cases)
		if err != nil || t.Series.IsTekton() {
			return err
		}
		return requireIntegrationTest(t.Series.Name, cases)
	})
}

// verifyFixes runs the tests about environments, and those that the fix adds or changes, on the release
// of s with each fix of upstream's code and what that needs. It vets the kubelet for Windows with all.
func (c *check) verifyFixes(s series.Series) error {
	fixes, err := filepath.Glob(filepath.Join(repo.Root, series.FixesFolder(s.Name), "*.patch"))
	if err != nil {
		return err
	}
	for _, fix := range fixes {
		if s.Fixes, err = series.FindFixes([]string{fix}); err != nil {
			return err
		}
		t, err := source.Assemble(c.ctx, repo, s, source.Options{Stock: true}, nil)
		if err != nil {
			return err
		}
		var none struct{}
		err = c.once(t, "fix "+filepath.Base(fix), &none, func() error {
			files, err := t.Changed(c.ctx)
			if err != nil {
				return err
			}
			own, err := ownTests(c.ctx, t, t.Dir)
			if err != nil {
				return err
			}
			names := "Env"
			for test := range own {
				names += "|^" + test[1] + "$"
			}
			cases, err := goTest(c.ctx, c.step.Log(), t.Dir, treeEnv, append([]string{"-count=1", "-run=" + names}, t.Packages(files)...)...)
			c.count(cases)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", fix, err)
		}
	}
	if s.Fixes = fixes; len(fixes) == 0 {
		return nil
	}
	t, err := source.Assemble(c.ctx, repo, s, source.Options{Stock: true}, nil)
	if err != nil {
		return err
	}
	var none struct{}
	return c.once(t, "all fixes on windows", &none, func() error { return kubeletForWindows(c, t) })
}

// passLasts is how long once counts on a pass.
const passLasts = 30 * 24 * time.Hour

// once runs prove unless it has passed before with the same tree, host and code of this repository.
// In that case it sets result to the value that it had. What it proves takes nothing from Go's cache,
// which knows nothing of the host.
func (c *check) once(t *source.Tree, what string, result any, prove func() error) error {
	inputs, err := passInputs(c.ctx)
	if err != nil {
		return err
	}
	key := digest.Of(append(slices.Clone(inputs), what, t.Key)...)
	passed := filepath.Join(repo.Cache("verify-series"), key[:32]+".json")
	if stat, err := os.Stat(passed); err == nil && time.Since(stat.ModTime()) < passLasts {
		if data, err := os.ReadFile(passed); err == nil && json.Unmarshal(data, result) == nil {
			c.part(what+": passed before on this tree", func() error { return nil })
			return nil
		}
	}
	c.step.Now("%s", what)
	c.uncached = true
	defer func() { c.uncached = false }()
	if err := prove(); err != nil || c.Failed() {
		return err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(passed), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(passed, data, 0o644)
}

// proofsOfSeries are the files of this package that decide on a pass.
var proofsOfSeries = []string{
	"hack/proof/check_test.go", "hack/proof/fixtures_test.go", "hack/proof/gotest_test.go", "hack/proof/series_test.go",
	"hack/proof/source_test.go", "hack/proof/tekton_test.go", "hack/proof/upstream_test.go",
}

// passInputs are what a pass depends on beside its tree: the host, and the code that chooses and runs
// tests and generators, with all that it imports.
var passInputs = func(ctx context.Context) ([]string, error) {
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return nil, err
	}
	git, err := run.Command(ctx, "git", "--version").Output()
	if err != nil {
		return nil, err
	}
	inputs := []string{runtime.Version(), unix.ByteSliceToString(kernel.Release[:]), fmt.Sprint(os.Getuid()), git}
	const files = `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{else}}{{.Module}}{{end}}{{end}}`
	deps, err := run.Command(ctx, "go", "list", "-deps", "-f="+files, "./hack/internal/codegen", "./hack/internal/source", "./hack/internal/junit", "gotest.tools/gotestsum/testjson").Dir(repo.Root).Output()
	if err != nil {
		return nil, err
	}
	var sources []string
	for line := range strings.Lines(deps) {
		if line = strings.TrimSpace(line); filepath.IsAbs(line) {
			sources = append(sources, line)
		} else {
			inputs = append(inputs, line) // a module and its version
		}
	}
	patterns := []string{
		"hack/internal/codegen/*_test.go",
		"hack/internal/nodeimage/support.go", "hack/images/etcd/*.mod", "hack/images/etcd/*.sum", // the etcd of integration tests
	}
	for _, pattern := range append(patterns, proofsOfSeries...) {
		files, err := filepath.Glob(filepath.Join(repo.Root, pattern))
		if err != nil {
			return nil, err
		}
		sources = append(sources, files...)
	}
	sums, err := digest.Files(sources...)
	return append(inputs, sums...), err
}

func TestOnceProvesAgain(t *testing.T) {
	setSteps(t)
	before, inputs := passInputs, []string{"kernel 1"}
	passInputs = func(context.Context) ([]string, error) { return inputs, nil }
	root := repo
	repo = layout.Layout{Root: t.TempDir()}
	t.Cleanup(func() { repo, passInputs = root, before })

	tree, runs := &source.Tree{Key: "tree 1"}, 0
	for _, test := range []struct {
		name   string
		change func()
		want   int // runs in all
	}{
		{"the first time", func() {}, 1},
		{"not if nothing has changed", func() {}, 1},
		{"on another host", func() { inputs = []string{"kernel 2"} }, 2},
		{"of another tree", func() { tree.Key = "tree 2" }, 3},
		{"after a month", func() {
			passes, _ := filepath.Glob(filepath.Join(repo.Cache("verify-series"), "*"))
			for _, pass := range passes {
				if err := os.Chtimes(pass, time.Time{}, time.Now().Add(-passLasts)); err != nil {
					t.Fatal(err)
				}
			}
		}, 4},
	} {
		test.change()
		var none struct{}
		c := &check{T: t, ctx: t.Context()}
		if err := c.once(tree, "tests", &none, func() error {
			runs++
			if !c.uncached {
				t.Error("results can come from Go's cache")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if runs != test.want {
			t.Errorf("%s: proven %d times, want %d", test.name, runs, test.want)
		}
	}
}

func TestPassInputsChangeWithTheCode(t *testing.T) {
	root := repo
	repo = layout.MustFind()
	t.Cleanup(func() { repo = root })
	inputs, err := passInputs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	output := func(name string, args ...string) string {
		t.Helper()
		out, err := run.Command(t.Context(), name, args...).Dir(repo.Root).Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	module := func(path string) string { return output("go", "list", "-m", "-f={{.Path}} {{.Version}}", path) }
	wants := map[string]string{
		"Go": runtime.Version(), "git": output("git", "--version"), "the kernel": output("uname", "-r"), "the user": output("id", "-u"),
		"what reads go test": module("gotest.tools/gotestsum"), "what generators import": module("golang.org/x/mod"),
	}
	files := []string{
		"check_test.go", "fixtures_test.go", "gotest_test.go", "series_test.go", "source_test.go", "tekton_test.go", "upstream_test.go",
		"../internal/codegen/codegen.go", "../internal/codegen/tree_test.go", "../internal/source/tree.go", "../internal/series/series.go",
		"../internal/gitrepo/gitrepo.go", "../internal/junit/junit.go", "../internal/nodeimage/support.go",
		"../images/etcd/v3.5.24.mod", "../images/etcd/v3.5.24.sum",
	}
	for _, file := range files {
		if wants[file], err = digest.File(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range wants {
		if !slices.Contains(inputs, want) {
			t.Errorf("a pass does not depend on %s: %q", name, want)
		}
	}
}

// TestSeriesHaveEveryFileSystem runs a proof where no package is installed, nor can be.
func TestSeriesHaveEveryFileSystem(t *testing.T) {
	dir, bin := fuzzRepository(t), t.TempDir()
	testutil.WriteFile(t, filepath.Join(bin, "dpkg-query"), "#!/bin/sh\n")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSeries$/^series_v1.33$", "-podenv.series=v1.33", "-podenv.only=series", "-podenv.plain")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "missing packages: xfsprogs btrfs-progs ") {
		t.Errorf("error %v:\n%s", err, out)
	}
}

// verified is how far a series got from its patches to tested binaries.
type verified struct {
	Series, Release string
	// Assembled: the patches apply and code was generated. Compiled: all components compile.
	Assembled, Compiled bool
	// Tests are those of the packages that the series touches.
	Tests junit.Counts
	// Report is that of a series whose tests have passed.
	Report report.Report
}

// writeVerified writes a table with a line for each series.
func writeVerified(w io.Writer, rows []verified) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERIES\tRELEASE\tPATCHES\tAPPLY, GENERATE\tCOMPILE\tTESTS\tGATES")
	for _, r := range rows {
		patches, tests, gates := "", "", ""
		if r.Tests.Total() > 0 {
			tests = r.Tests.String()
		}
		if r.Report.Patches > 0 {
			patches = fmt.Sprint(r.Report.Patches)
		}
		if r.Report.Built { // Tekton has no feature gates
			gates = verdict(!report.Disagree([]report.Report{r.Report}))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Series, r.Release, patches, verdict(r.Assembled), verdict(r.Compiled), tests, gates)
	}
	return t.Flush()
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAIL"
}
