package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/suite"
	"podenv.dev/hack/internal/testutil"
)

const (
	first  = "[sig-node] Pods first [Conformance]"
	second = "[sig-node] Pods second [Conformance]"
	alone  = "[sig-apps] Daemon set alone [Serial] [Conformance]"
	other  = "[sig-node] Pods other [NodeConformance]"
)

// fakeSuite is a release with four specs, of which second fails in each run and alone skips itself. $F/hang
// makes a run hang, $F/result is the result of second in place of that, $F/setup that of the set-up, and
// $F/others has results of more. ginkgo records the arguments of its runs.
func fakeSuite(t *testing.T) (Options, *testutil.Commands) {
	t.Helper()
	c := testutil.NewCommands(t, "cat", "sleep", "test", "rm", "grep")
	c.Script("ginkgo", `for arg; do case $arg in --report-dir=*) dir=${arg#*=} ;; --focus=*) focus=${arg#*=} ;; --skip=*) skip="${skip:-^$}|${arg#*=}" ;; --label-filter=*) label=${arg#*=} ;; esac; done
n=0 failed=0 result='<failure>timed out</failure>' setup=
if test -e $F/result; then result=$(cat $F/result); fi
if test -e $F/setup; then setup=$(cat $F/setup) failed=1; fi
spec() { # name, label, result
	if echo "$1" | grep -qE "$focus" && test "$2" = $label && ! echo "$1" | grep -qE "${skip:-^$}"; then
		n=$((n+1)); r=$3
		case $r in "<failure>"*) failed=1 ;; esac
	else
		r='<skipped message="skipped"/>'
	fi
	echo "<testcase name=\"[It] $1\" time=\"8\">$r</testcase>" >>$dir/cases
}
trap : INT
if test -e $F/hang; then rm $F/hang; echo >$F/hanging; sleep 60; fi
spec "`+first+`" '!Serial' ''
spec "`+second+`" '!Serial' "$result"
spec "`+alone+`" Serial '<skipped message="skipped - needs two nodes"/>'
spec "`+other+`" '!Serial' ''
echo "Will run $n of 4 specs"
{ echo '<testsuites><testsuite><testcase name="[SynchronizedBeforeSuite]" time="1">'"$setup"'</testcase>'; cat $dir/cases; if test -e $F/others; then cat $F/others; fi; echo '</testsuite></testsuites>'; } >$dir/junit_01.xml
exit $failed`)
	c.Write("kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n")
	return Options{
		Dir: filepath.Join(c.Dir, "results"), Specs: &build.Specs{Dir: filepath.Join(c.Dir, "bin"), Key: "key"}, Cluster: "cluster",
		Kubeconfig: filepath.Join(c.Dir, "kubeconfig"), Runs: []string{Parallel, Serial}, Procs: 4, Timeout: time.Hour,
	}, c
}

// runFake returns the state of each spec, by name.
func runFake(t *testing.T, ctx context.Context, o Options) (map[string]string, error) {
	t.Helper()
	rows, err := Run(ctx, fake.NewClientset(), o, nil)
	return states(rows), err
}

func states(rows []Row) map[string]string {
	out := map[string]string{}
	for _, r := range rows {
		out[r.Spec] = r.State + " " + r.Why
	}
	return out
}

// ran returns how many results a file e2e.log says were selected, in each run.
func ran(t *testing.T, o Options) string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(o.Dir, "e2e.log"))
	if err != nil {
		t.Fatal(err)
	}
	var counts []string
	for line := range strings.Lines(string(log)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "Will" {
			counts = append(counts, f[2])
		}
	}
	return strings.Join(counts, " ")
}

func TestEachSpecPassesOnceOnABuild(t *testing.T) {
	o, c := fakeSuite(t)
	want := map[string]string{first: "passed ", second: "failed timed out", alone: "left out needs two nodes"}
	for _, step := range []struct {
		what, selected string // by run, since e2e.log is of the same build
		change         func()
	}{
		{"the first time", "2 1", func() {}},
		{"again", "2 1 1 1", func() {}}, // what has failed or was left out
		{"with --again", "2 1", func() { o.Again = true }},
		{"of another tree", "2 1", func() { o.Again, o.Specs.Key = false, "other" }},
		{"on another cluster", "2 1", func() { o.Cluster = "other" }},
	} {
		step.change()
		if got, err := runFake(t, t.Context(), o); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", step.what, got, err, want)
		}
		if got := ran(t, o); got != step.selected {
			t.Errorf("%s: selected %s, want %s", step.what, got, step.selected)
		}
	}
	calls := c.Calls("ginkgo")
	if !strings.Contains(calls[0], "--procs=4") || !strings.Contains(calls[1], "--procs=1") {
		t.Errorf("ginkgo ran as %q", calls)
	}
	for _, call := range calls {
		if strings.Contains(call, "flake") {
			t.Errorf("specs get more than one attempt: %s", call)
		}
	}
}

// The kernel refuses an argument of 128 KiB: --focus can select thousands of specs.
func TestManySpecsThatHavePassedAreSkipped(t *testing.T) {
	var r results
	r.Suite.Cases = slices.Repeat([]junit.Case{{Name: "[It] [sig-storage] In-tree Volumes [Driver: local]"}}, 7000)
	args := Options{Specs: &build.Specs{}}.arguments(Parallel, "", &r)
	if !strings.Contains(strings.Join(args, " "), " --skip=") {
		t.Error("nothing is skipped")
	}
	for _, arg := range args {
		if len(arg) >= 128<<10 {
			t.Errorf("an argument has %d bytes", len(arg))
		}
	}
}

func TestTheLastRunSaysHowLongTheNextTakes(t *testing.T) {
	o, _ := fakeSuite(t)
	if _, err := runFake(t, t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Cluster = "other"
	_, last, err := o.load()
	if err != nil || last[Parallel] != 4*time.Second || last[Serial] != 8*time.Second {
		t.Errorf("took %v, %v", last, err)
	}
}

func TestAFocusReplacesTheSuite(t *testing.T) {
	o, _ := fakeSuite(t)
	o.Focus = `\[NodeConformance\]`
	if got, err := runFake(t, t.Context(), o); err != nil || len(got) != 1 || got[other] != "passed " {
		t.Errorf("%v, %v; want only %s", got, err, other)
	}
	o.Focus = "no such spec" // the results of the focus before do not count
	_, err := runFake(t, t.Context(), o)
	if !errors.Is(err, suite.ErrNoSpecs) {
		t.Errorf("error %v", err)
	}
}

// After Ctrl-C what has passed or failed counts, but not what it interrupted.
func TestAnInterruptedRunGoesOn(t *testing.T) {
	o, c := fakeSuite(t)
	c.Write("hang", "")
	c.Write("others", `<testcase name="[It] ran" status="interrupted"><failure>interrupted by user</failure></testcase>`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(c.Dir, "hanging")); err == nil {
				cancel()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if _, err := runFake(t, ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	results, _, err := o.load()
	if err != nil {
		t.Fatal(err)
	}
	if got := states(results.rows(o.Runs)); !maps.Equal(got, map[string]string{first: "passed ", second: "failed timed out"}) {
		t.Errorf("states %v", got)
	}
	if entries, _ := filepath.Glob(filepath.Join(o.Dir, "run-*")); len(entries) > 0 {
		t.Errorf("%v is left", entries)
	}
}

func TestTwoRunsDoNotShareResults(t *testing.T) {
	o, _ := fakeSuite(t)
	unlock, err := lockfile.TryLock(filepath.Join(o.Dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := runFake(t, t.Context(), o); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("error %v", err)
	}
}

func TestARunWithoutResultsIsAnError(t *testing.T) {
	o, c := fakeSuite(t)
	c.Script("ginkgo", "echo no space left on device; exit 1")
	_, err := runFake(t, t.Context(), o)
	testutil.CheckError(t, err, "no space left on device")
}

func TestAFullDiskEndsTheRun(t *testing.T) {
	o, c := fakeSuite(t)
	if _, err := runFake(t, t.Context(), o); err != nil { // which makes the log of this build
		t.Fatal(err)
	}
	log := filepath.Join(o.Dir, "e2e.log")
	if err := errors.Join(os.Remove(log), os.Symlink("/dev/full", log)); err != nil {
		t.Fatal(err)
	}
	c.Script("ginkgo", "while echo a spec runs; do sleep 0.1; done")
	_, err := runFake(t, t.Context(), o)
	testutil.CheckError(t, err, "no space left on device")
}

func TestSpecsThatDidNotRunAreAnError(t *testing.T) {
	o, c := fakeSuite(t)
	c.Script("ginkgo", `for arg; do case $arg in --report-dir=*) dir=${arg#*=} ;; esac; done
echo 'Will run 2 of 4 specs'
echo '<testsuites><testsuite><testcase name="[SynchronizedBeforeSuite]"><failure>no node is ready</failure></testcase></testsuite></testsuites>' >$dir/junit_01.xml; exit 1`)
	_, err := runFake(t, t.Context(), o)
	testutil.CheckError(t, err, "0 of 2 specs ran, see "+o.Dir)
}

// A second call must not hide what the first one said.
func TestASpecThatFailedBeforeItPassedIsFlaky(t *testing.T) {
	o, c := fakeSuite(t)
	if _, err := runFake(t, t.Context(), o); err != nil {
		t.Fatal(err)
	}
	c.Write("result", "")
	for _, selected := range []string{"2 1 1 1", "2 1 1 1 0 1"} {
		got, err := runFake(t, t.Context(), o)
		if err != nil || got[second] != "flaky failed before: timed out" || got[first] != "passed " {
			t.Errorf("%v, %v", got, err)
		}
		if ran := ran(t, o); ran != selected {
			t.Errorf("selected %s, want %s", ran, selected)
		}
	}
}

// The set-up has no other result to be replaced by once it works.
func TestASetUpThatFailedCountsInItsCallOnly(t *testing.T) {
	const setUp = "[SynchronizedBeforeSuite]"
	o, c := fakeSuite(t)
	o.Runs = []string{Serial}
	c.Write("setup", "<failure>no node is ready</failure>")
	if got, err := runFake(t, t.Context(), o); err != nil || got[setUp] != "failed no node is ready" {
		t.Errorf("%v, %v", got, err)
	}
	if err := os.Remove(filepath.Join(c.Dir, "setup")); err != nil {
		t.Fatal(err)
	}
	o.Runs = []string{Parallel, Serial}
	if got, err := runFake(t, t.Context(), o); err != nil || len(got) != 3 || got[setUp] != "" {
		t.Errorf("%v, %v; want the specs", got, err)
	}
}

// junitOf makes ginkgo write the results cases, print what it selected and end with status.
func junitOf(c *testutil.Commands, prints, cases, status string) {
	c.Script("ginkgo", `for arg; do case $arg in --report-dir=*) dir=${arg#*=} ;; esac; done
echo '`+prints+`'; echo '<testsuites><testsuite>`+cases+`</testsuite></testsuites>' >$dir/junit_01.xml; exit `+status)
}

func TestARunIsNotGreenBecauseNothingFailed(t *testing.T) {
	leftOut := func(n int) (cases string) {
		for i := range n {
			cases += fmt.Sprintf(`<testcase name="[It] spec %d"><skipped message="skipped - no such node"/></testcase>`, i)
		}
		return cases + `<testcase name="[It] last"/>`
	}
	for name, tc := range map[string]struct{ focus, prints, cases, status, want string }{
		"8 left out":                          {"", "Will run 9 of 9", leftOut(8), "0", ""},
		"9 left out":                          {"", "Will run 10 of 10", leftOut(9), "0", "9 specs of the suite left themselves out"},
		"9 of another selection":              {".", "Will run 10 of 10", leftOut(9), "0", ""},
		"all left out":                        {".", "Will run 1 of 1", `<testcase name="[It] a"><skipped message="skipped - no"/></testcase>`, "0", `no spec ran: --focus "."`},
		"a runner that says nothing":          {"", "", leftOut(0), "0", "1 of -1 specs ran"},
		"a runner that fails without failure": {"", "Will run 1 of 1", leftOut(0), "1", "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			o, c := fakeSuite(t)
			o.Focus, o.Runs = tc.focus, []string{Parallel}
			junitOf(c, tc.prints, tc.cases, tc.status)
			_, err := runFake(t, t.Context(), o)
			testutil.CheckError(t, err, tc.want)
		})
	}
}

func TestARunThatEndsEarlyHasTheResultsByThen(t *testing.T) {
	o, c := fakeSuite(t)
	c.Script("ginkgo", `for arg; do case $arg in --report-dir=*) dir=${arg#*=} ;; esac; done
echo 'Will run 2 of 4 specs'
echo '<testsuites><testsuite><testcase name="[It] `+second+`"><failure>A suite timeout occurred</failure></testcase><testcase name="[It] `+first+`"><skipped message="skipped"/></testcase></testsuite></testsuites>' >$dir/junit_01.xml; exit 1`)
	got, err := runFake(t, t.Context(), o)
	if !errors.Is(err, ErrEnded) || !maps.Equal(got, map[string]string{second: "failed A suite timeout occurred"}) {
		t.Errorf("%v, %v", got, err)
	}
	testutil.CheckError(t, err, "the run ended early: 1 of 2 specs ran, see "+o.Dir)
	if log, err := os.ReadFile(filepath.Join(o.Dir, "e2e.log")); err != nil || strings.Count(string(log), "Will run") != 2 {
		t.Errorf("the serial run did not follow: %s%v", log, err)
	}
	// What breaks the serial run is no run that ended early, which a caller may go on after.
	c.Script("ginkgo", `for arg; do case $arg in --report-dir=*) dir=${arg#*=} ;; --label-filter=Serial) echo broken >&2; exit 1 ;; esac; done
echo 'Will run 2 of 4 specs'
echo '<testsuites><testsuite><testcase name="[It] `+other+`"/></testsuite></testsuites>' >$dir/junit_01.xml; exit 1`)
	_, err = runFake(t, t.Context(), o)
	if testutil.CheckError(t, err, "the specs ended without results"); errors.Is(err, ErrEnded) {
		t.Errorf("a broken run ended early: %v", err)
	}
}

func TestSkippedSpecsDoNotRun(t *testing.T) {
	o, _ := fakeSuite(t)
	o.Skip, o.Runs = []string{"nothing", "second"}, []string{Parallel}
	if got, err := runFake(t, t.Context(), o); err != nil || !maps.Equal(got, map[string]string{first: "passed "}) {
		t.Errorf("%v, %v; want only %s", got, err, first)
	}
}

func TestTheTableCountsEachRun(t *testing.T) {
	var out strings.Builder
	rows := []Row{
		{Parallel, first, Passed, 2, ""}, {Parallel, other, Flaky, 2, "failed before: a"}, {Parallel, second, Failed, 3, "timed out"}, {Serial, alone, LeftOut, 0, "needs two nodes"},
	}
	if err := WriteTable(&out, rows); err != nil {
		t.Fatal(err)
	}
	const want = `RUN       PASSED  FLAKY  FAILED  LEFT OUT
parallel       1      1       1         0
serial         0      0       0         1
flaky: ` + other + `
  failed before: a
failed: ` + second + `
  timed out
left out: ` + alone + `
  needs two nodes
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := WriteTSV(&out, rows[2:3]); err != nil || out.String() != "parallel\t"+second+"\tfailed\t3\ttimed out\n" {
		t.Errorf("TSV %q, %v", out.String(), err)
	}
}
