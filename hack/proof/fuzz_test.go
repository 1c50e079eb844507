package proof

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/testutil"
)

var (
	fuzzPattern  = flag.String("podenv.fuzz", "", "fuzz only targets whose PACKAGE.NAME matches this regular expression")
	fuzzList     = flag.Bool("podenv.fuzz-list", false, "print the fuzz targets and end")
	executions   = flag.Int64("podenv.executions", 10_000_000, "how many times each fuzz target runs")
	fuzzUnguided = flag.Bool("podenv.unguided", false, "fuzz without coverage")
)

// TestFuzz fuzzes the targets one after another, because each uses all cores.
func TestFuzz(t *testing.T) {
	requireSeries(t)
	targets, err := allFuzzTargets(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(targets) == 0 {
		t.Fatalf("no fuzz target matches --target %q: podenv fuzz --list prints them", *fuzzPattern)
	}
	for i, target := range targets {
		lane{t}.check(fmt.Sprintf("fuzz %s (%d of %d)", target, i+1, len(targets)), "fuzz", func(*check) {}, func(c *check) error {
			return target.explain(target.fuzz(c.ctx, *executions, c.step))
		})
	}
	if ctx.Err() != nil {
		t.Skip("interrupted") // it would count as passed
	}
}

func printFuzzTargets() int {
	targets, err := allFuzzTargets(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, target := range targets {
		fmt.Println(target)
	}
	return 0
}

// module is a Go module with fuzz targets.
type module struct {
	dir string
	env []string // for go
	// unguided runs targets without coverage counters, and so without knowing which inputs
	// reach new code. After each execution, Go reads the counters of everything that is
	// linked in: with much of Kubernetes, that takes most of the time.
	unguided bool
}

type fuzzTarget struct {
	module
	pkg, name string
}

// String names the target: podenv.dev/pkg/kubelet/envfile.FuzzParse.
func (t fuzzTarget) String() string { return t.pkg + "." + t.name }

// allFuzzTargets finds the targets of the leaf packages, and those that the patches add, that the
// pattern matches. If there is no tree, it assembles one, unless targets are only listed or the
// pattern matches a leaf package's.
func allFuzzTargets(ctx context.Context) ([]fuzzTarget, error) {
	pattern, err := regexp.Compile(*fuzzPattern)
	if err != nil {
		return nil, err
	}
	step := steps.Reporter.Step("fuzz targets")
	targets, err := module{dir: repo.Root, unguided: *fuzzUnguided}.targets(ctx, "./pkg/...", "./staging/...")
	if step.End(err) != nil {
		return nil, err
	}
	others := func(t fuzzTarget) bool { return !pattern.MatchString(t.String()) }
	targets = slices.DeleteFunc(targets, others)
	openTree := steps.TreeAsItIs
	if *fuzzList || *fuzzPattern != "" && len(targets) > 0 {
		openTree = func(ctx context.Context) (*source.Tree, error) {
			return source.Open(ctx, repo, steps.Series, false, steps.Reporter)
		}
	}
	tree, err := openTree(ctx)
	if errors.Is(err, source.ErrNoTree) {
		steps.Reporter.Print(fmt.Sprintf("        without the targets of the patches: %v", err))
	} else if err != nil {
		return nil, err
	} else {
		step = steps.Reporter.Step("fuzz targets of the patches")
		added, err := addedTargets(ctx, tree)
		if step.End(err) != nil {
			return nil, err
		}
		targets = append(targets, slices.DeleteFunc(added, others)...)
	}
	return targets, nil
}

// targets lists the fuzz targets of packages. It compiles the packages' tests.
func (m module) targets(ctx context.Context, packages ...string) ([]fuzzTarget, error) {
	tests, err := testsIn(ctx, m.dir, m.env, `^Fuzz\w*$`, packages...)
	var targets []fuzzTarget
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		for _, name := range tests[pkg] {
			targets = append(targets, fuzzTarget{m, pkg, name})
		}
	}
	return targets, err
}

var fuzzDeclaration = regexp.MustCompile(`(?m)^func Fuzz\w*\(`)

// addedTargets lists the fuzz targets of the packages where the tree adds some to the release,
// committed or not. It leaves out files that this repository has.
func addedTargets(ctx context.Context, t *source.Tree) ([]fuzzTarget, error) {
	files, err := t.Changed(ctx)
	if err != nil {
		return nil, err
	}
	var packages []string
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(repo.Root, file)); err == nil || !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(t.Dir, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // deleted, not yet committed
			return nil, err
		}
		if fuzzDeclaration.Match(text) {
			packages = append(packages, t.Series.ImportPath(path.Dir(file)))
		}
	}
	if len(packages) == 0 {
		return nil, nil
	}
	slices.Sort(packages)
	return module{dir: t.Dir, env: treeEnv, unguided: true}.targets(ctx, slices.Compact(packages)...)
}

// fuzz runs the seeds of the target, and then the target until it fails or has run that many
// executions. Go keeps the interesting inputs of a guided run in its build cache. It minimizes
// them for one execution only, because that helps only readers, and can take a minute each.
//
// After a signal, go ends fuzzing with success. So a target that ends early is an error, of type
// skipped if ctx has ended.
func (t fuzzTarget) fuzz(ctx context.Context, executions int64, step *progress.Step) error {
	var counted int64 // executions, by go test
	output := run.Lines(func(line string) {
		if status, ok := strings.CutPrefix(line, "fuzz: "); ok {
			step.Now("%s", status)
			if count := executed.FindStringSubmatch(status); count != nil {
				fmt.Sscan(count[1], &counted) //nolint:errcheck // it is digits
			}
		}
	})
	err := t.run(ctx, executions, io.MultiWriter(output, step.Log()))
	if ctx.Err() == nil && (err != nil || counted >= executions) {
		return err
	}
	early := fmt.Sprintf("interrupted after at least %d of %d executions", counted, executions)
	if ctx.Err() == nil {
		return errors.New(early + ": the fuzz target got a signal; run it again")
	}
	return skipped(early)
}

// run runs the target, and writes what go test prints to log.
func (t fuzzTarget) run(ctx context.Context, executions int64, log io.Writer) error {
	flags := func(prefix string) []string {
		return []string{prefix + "run=^$", prefix + "fuzz=^" + t.name + "$", fmt.Sprintf("%sfuzztime=%dx", prefix, executions), prefix + "fuzzminimizetime=1x"}
	}
	in := func(dir, name string, args ...string) *run.Cmd {
		return run.Command(ctx, name, args...).Dir(dir).Env(t.env...).Log(log)
	}
	if !t.unguided {
		return in(t.dir, "go", append(append([]string{"test"}, flags("-")...), t.pkg)...).Run()
	}
	work, err := os.MkdirTemp("", "podenv-fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	binary := filepath.Join(work, "fuzz.test")
	if err := in(t.dir, "go", "test", "-c", "-o", binary, t.pkg).Run(); err != nil {
		return err
	}
	// Run it in the package's directory, as go test does: it writes a failing input there.
	folder, err := in(t.dir, "go", "list", "-f={{.Dir}}", t.pkg).Output()
	if err != nil {
		return err
	}
	return in(folder, binary, append(flags("-test."), "-test.fuzzcachedir="+filepath.Join(work, "cache"))...).Run()
}

// failingInput matches the name that go test prints of a failing input or seed.
var failingInput = regexp.MustCompile(`(?:go test -run=|seed corpus entry: )(Fuzz\S+)`)

// explain adds the command that runs the failing input again to err.
func (t fuzzTarget) explain(err error) error {
	if err == nil {
		return nil
	}
	input := failingInput.FindStringSubmatch(err.Error())
	if input == nil {
		return err
	}
	words := []string{"cd", run.Quote(t.dir), "&&", "env"}
	for _, word := range append(t.env, "go", "test", "-run=^"+input[1]+"$", t.pkg) {
		words = append(words, run.Quote(word))
	}
	return fmt.Errorf("%w\nrun it again: %s", err, strings.Join(words, " "))
}

// executed matches the number of executions that go test prints, seeds included.
var executed = regexp.MustCompile(`(?:execs: |baseline coverage: |seed corpus: )(\d+)`)

// fuzzModule returns a module with the fuzz targets FuzzGood, FuzzBad and FuzzSignal, in
// which go test -fuzz gets the signal of Ctrl-C.
func fuzzModule(t *testing.T, unguided bool) module {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.test\n\ngo 1.21\n",
		"a_test.go": `package a
import ("os"; "syscall"; "testing")
func FuzzGood(f *testing.F) { f.Add(1); f.Add(2); f.Fuzz(func(t *testing.T, n int) {}) }
func FuzzBad(f *testing.F) { f.Fuzz(func(t *testing.T, n int) { if n != 0 { t.Error("not zero") } }) }
func FuzzSignal(f *testing.F) { f.Fuzz(func(t *testing.T, n int) { syscall.Kill(os.Getppid(), syscall.SIGINT) }) }
func TestNone(t *testing.T) {}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return module{dir: dir, env: []string{"GOFLAGS=-mod=mod", "GOWORK=off"}, unguided: unguided}
}

func TestInterruptedFuzzIsNoSuccess(t *testing.T) {
	const executions = 1_000_000_000
	want := regexp.MustCompile(`^interrupted after at least \d+ of 1000000000 executions`)
	for _, unguided := range []bool{false, true} {
		m := fuzzModule(t, unguided)
		var reason skipped
		err := fuzzTarget{m, "example.test", "FuzzSignal"}.fuzz(t.Context(), executions, nil)
		if err == nil || !want.MatchString(err.Error()) {
			t.Errorf("unguided %t: a target that got a signal ended with %v", unguided, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = fuzzTarget{m, "example.test", "FuzzGood"}.fuzz(ctx, executions, nil)
		if !errors.As(err, &reason) || !want.MatchString(string(reason)) {
			t.Errorf("unguided %t: the target ended with %v when its context did", unguided, err)
		}
	}
}

// fuzzRepository returns the folder of a repository with the targets of fuzzModule and without a tree.
func fuzzRepository(t *testing.T) string {
	t.Helper()
	dir := fuzzModule(t, false).dir
	if err := errors.Join(
		os.CopyFS(filepath.Join(dir, "patches", "v1.33"), os.DirFS(filepath.Join(layout.MustFind().Root, "patches", "v1.33"))),
		os.Mkdir(filepath.Join(dir, "staging"), 0o755),
		os.Mkdir(filepath.Join(dir, "pkg"), 0o755),
		os.Rename(filepath.Join(dir, "a_test.go"), filepath.Join(dir, "pkg", "a_test.go")),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFuzzAssemblesTheTreeForATargetOfThePatches runs it where assembling ends at its first step, as
// there is no dpkg-query in PATH.
func TestFuzzAssemblesTheTreeForATargetOfThePatches(t *testing.T) {
	dir, bin := fuzzRepository(t), t.TempDir()
	goCommand, err := exec.LookPath("go")
	if err == nil {
		err = os.Symlink(goCommand, filepath.Join(bin, "go"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flag      string
		assembles bool
	}{
		{"-podenv.fuzz=FuzzOfThePatches", true},
		{"-podenv.fuzz=FuzzGood", false},
		{"-podenv.fuzz-list", false},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFuzz$", "-podenv.series=v1.33", "-podenv.only=fuzz",
			test.flag, "-podenv.executions=1", "-podenv.plain")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin)
		out, err := cmd.CombinedOutput()
		if assembles := strings.Contains(string(out), "there is no dpkg-query"); assembles != test.assembles || (err != nil) != test.assembles {
			t.Errorf("%s: assembles a tree: %t, want %t; %v\n%s", test.flag, assembles, test.assembles, err, out)
		}
	}
}

// TestInterruptedFuzzHasNoTestThatPassed sends a signal while a target of another repository is
// fuzzed.
func TestInterruptedFuzzHasNoTestThatPassed(t *testing.T) {
	dir := fuzzRepository(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v=test2json", "-test.run=^TestFuzz$",
		"-podenv.series=v1.33", "-podenv.only=fuzz", "-podenv.fuzz=FuzzGood", "-podenv.executions=1000000000", "-podenv.plain")
	cmd.Dir = dir
	var results bytes.Buffer
	cmd.Stdout = &results
	shown, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(shown); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), "(1 of 1)") {
			cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // its status says so
		}
	}
	err = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != interrupted {
		t.Errorf("status %d (%v), want %d", got, err, interrupted)
	}
	out := results.String()
	if !strings.Contains(out, "interrupted after at least ") || strings.Contains(out, "--- PASS") {
		t.Errorf("the results do not say that nothing passed, and why:\n%s", out)
	}
}

func TestFuzzRunsTargetsAndNamesAFailingInput(t *testing.T) {
	for _, unguided := range []bool{false, true} {
		m := fuzzModule(t, unguided)
		targets, err := m.targets(t.Context(), "./...")
		if err != nil || len(targets) != 3 || targets[0].String() != "example.test.FuzzGood" {
			t.Fatalf("found %v, %v", targets, err)
		}
		for _, executions := range []int64{1, 100} { // with 1, only a seed runs
			if err := targets[0].fuzz(t.Context(), executions, nil); err != nil {
				t.Error(err)
			}
		}
		// The second time the input is a seed.
		err = targets[1].explain(targets[1].fuzz(t.Context(), 1000, nil))
		if err == nil || !strings.Contains(err.Error(), "not zero") || !strings.Contains(err.Error(), "GOWORK=off go test '-run=^FuzzBad/") {
			t.Errorf("unguided %t: the failing target ended with %v", unguided, err)
		}
	}
}

func TestTargetsThatPatchesAdd(t *testing.T) {
	for name, module := range map[string]string{"v1.33": "k8s.io/kubernetes", "tekton-v1.10": "github.com/tektoncd/pipeline"} {
		tree := treeOf(t, "func FuzzOfTheRelease(f *testing.F) {}", "")
		tree.Series = series.Series{Name: name}
		testutil.WriteFile(t, filepath.Join(tree.Dir, "go.mod"), "module "+module+"\n\ngo 1.21\n")
		testutil.WriteFile(t, filepath.Join(tree.Dir, "pkg", "pod", "env_test.go"), "package pod\nimport \"testing\"\nfunc FuzzEnv(f *testing.F) {}\n")
		targets, err := addedTargets(t.Context(), tree)
		if err != nil || len(targets) != 1 || targets[0].String() != module+"/pkg/pod.FuzzEnv" {
			t.Errorf("%s: %v, %v", name, targets, err)
		}
	}
}
