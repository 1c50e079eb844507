package htmlreport

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// files are what go test and Ginkgo write about testdata/specs.
type files struct{ events, ginkgo string }

var makeFiles = sync.OnceValues(func() (files, error) {
	dir, err := os.MkdirTemp("", "htmlreport-")
	if err != nil {
		return files{}, err
	}
	f := files{filepath.Join(dir, "events.json"), filepath.Join(dir, "ginkgo.json")}
	if err := os.CopyFS(filepath.Join(dir, "specs"), os.DirFS("testdata/specs")); err != nil { // so that Go's cache knows of them
		return files{}, err
	}
	cmd := exec.Command("go", "test", "-json", "-count=1", "./testdata/specs", "-args", "--ginkgo.json-report="+f.ginkgo)
	cmd.Env = append(os.Environ(), "SPECS_JSON="+f.ginkgo)
	events, _ := cmd.Output() // some fail
	return f, os.WriteFile(f.events, events, 0o644)
})

func TestMain(m *testing.M) {
	status := m.Run()
	if f, err := makeFiles(); err == nil {
		os.RemoveAll(filepath.Dir(f.events))
	}
	os.Exit(status)
}

func reports(t testing.TB) files {
	t.Helper()
	f, err := makeFiles()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ofGinkgo(t testing.TB) *Run {
	t.Helper()
	r := &Run{Command: "podenv e2e"}
	if err := r.AddGinkgo(reports(t).ginkgo); err != nil {
		t.Fatal(err)
	}
	return r
}

func ofGoTest(t testing.TB) *Run {
	t.Helper()
	r := &Run{Command: "podenv test"}
	if err := r.AddGoTest(reports(t).events); err != nil {
		t.Fatal(err)
	}
	return r
}

// lines are the results without what differs from run to run.
func lines(r *Run) (all []string) {
	for _, result := range r.Results {
		all = append(all, strings.Join([]string{result.State, result.Group, result.Name}, ": "))
	}
	slices.Sort(all)
	return all
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestSpecsThatRanOrSayWhyTheyDidNotAreResults(t *testing.T) {
	equal(t, lines(ofGinkgo(t)),
		"failed: Tides: [sig-node] the tide goes out",
		"passed: Tides: [sig-node] the tide comes in",
		"passed: Tides: [sig-node] the tide has a matrix",
		"skipped: Tides: [sig-node] the tide is not there")
}

func TestAFailedSpecHasItsStepsAndWhatItReported(t *testing.T) {
	r := ofGinkgo(t)
	failed := r.Results[slices.IndexFunc(r.Results, func(r Result) bool { return r.State == Failed })]
	var titles, all []string
	for _, d := range failed.Details {
		titles, all = append(titles, d.Title), append(all, d.Text)
	}
	equal(t, titles, "steps", "events of namespace tides", "log of container sea", "output of the spec")
	for _, want := range []string{"looking at the moon", "looking at the sea", "failed at", "specs_test.go:", "Warning", "what the spec wrote"} {
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("no %q in %q", want, all)
		}
	}
	if !strings.Contains(failed.Gist(), "the water Expected") {
		t.Errorf("gist %q", failed.Gist())
	}
}

func TestTablesOfSpecsAreTables(t *testing.T) {
	for name, r := range map[string]*Run{"Ginkgo": ofGinkgo(t), "go test": ofGoTest(t)} {
		if len(r.Tables) != 1 || r.Tables[0].Rows[0][2].Text != "spring, not neap" {
			t.Errorf("%s: %v", name, r.Tables)
		}
	}
}

func TestTheResultsOfGoTestAreThoseWithoutSubtests(t *testing.T) {
	r := ofGoTest(t)
	equal(t, lines(r),
		"failed: e2e of tides: [sig-node] the tide goes out",
		"failed: e2e of tides: [sig-node] the tide is not there",
		"failed: fails by itself: fails by itself",
		"failed: podenv.dev/hack/internal/htmlreport/testdata/specs: TestSpecs",
		"passed: e2e of tides: [sig-node] the tide comes in",
		"passed: fails by itself: though its part passes",
		"passed: lint: gofmt",
		"passed: podenv.dev/hack/internal/htmlreport/testdata/specs: TestAlone",
		"skipped: lint: vet")
	var spans []string
	for _, s := range r.Spans {
		spans = append(spans, s.Lane)
	}
	equal(t, spans, "podenv.dev/hack/internal/htmlreport/testdata/specs", "e2e of tides", "lint", "fails by itself", "podenv.dev/hack/internal/htmlreport/testdata/specs")
}

func TestSubtestsThatAreSpecsHaveTheirDetailsButTheirOwnState(t *testing.T) {
	r := ofGoTest(t)
	for _, result := range r.Results {
		switch {
		case strings.HasSuffix(result.Name, "goes out") && len(result.Details) == 0:
			t.Error("the failed spec has no details")
		case strings.HasSuffix(result.Name, "is not there") && !strings.Contains(result.Why, "must run on this series"):
			t.Errorf("why: %q", result.Why)
		}
	}
	if got := len(r.Showing("TEP-1", "1")); got != 2 {
		t.Errorf("%d results show the row, want 2", got)
	}
}

func TestAPackageThatDoesNotCompileIsAResult(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module broken\n")
	write(t, filepath.Join(dir, "a_test.go"), "package broken\n\nvar a int = \"\"\n")
	cmd := exec.Command("go", "test", "-json", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	events, err := cmd.Output()
	if err == nil {
		t.Fatal("it compiles")
	}
	file := filepath.Join(dir, "events")
	write(t, file, string(events))
	var r Run
	if err := r.AddGoTest(file); err != nil {
		t.Fatal(err)
	}
	equal(t, lines(&r), "failed: broken: ")
	if !strings.Contains(r.Results[0].Gist(), "cannot use") {
		t.Errorf("gist %q", r.Results[0].Gist())
	}
}

func TestBrokenFilesAreNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "broken.json")
	write(t, file, `[{"a`)
	var r Run
	for name, add := range map[string]func(string) error{"Ginkgo": r.AddGinkgo, "go test": r.AddGoTest} {
		if err := add(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
