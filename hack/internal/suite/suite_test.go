package suite

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/test/e2e/options"
)

func TestConclude(t *testing.T) {
	passed := junit.Case{Name: "passes"}
	skipped := junit.Case{Name: "skipped", Skipped: &junit.Message{Message: "skipped - no kubectl"}}
	failed := junit.Case{Name: "fails", Failure: &junit.Message{Message: "Timed out after 90s.\npod p: still waiting"}}
	panicked := junit.Case{Name: "panics", Error: &junit.Message{Message: "nil map"}}
	killed := errors.New("exit status 197")
	for name, test := range map[string]struct {
		cases  []junit.Case
		runErr error
		counts junit.Counts
		kind   error    // nil: no error
		text   []string // in the error
	}{
		"all passed":                         {[]junit.Case{passed, passed}, nil, junit.Counts{Passed: 2}, nil, nil},
		"some were skipped":                  {[]junit.Case{passed, skipped}, nil, junit.Counts{Passed: 1, Skipped: 1}, nil, nil},
		"one failed":                         {[]junit.Case{passed, failed}, killed, junit.Counts{Passed: 1, Failed: 1}, ErrFailed, []string{"fails", "still waiting", "1 passed, 1 failed", "results.xml"}},
		"one panicked":                       {[]junit.Case{panicked}, killed, junit.Counts{Failed: 1}, ErrFailed, []string{"panics", "nil map"}},
		"the run was cut short":              {[]junit.Case{passed}, killed, junit.Counts{Passed: 1}, ErrFailed, []string{"exit status 197"}},
		"the filters select nothing":         {nil, nil, junit.Counts{}, ErrNoSpecs, []string{`--focus "row 9"`}},
		"every spec was skipped":             {[]junit.Case{skipped, skipped}, nil, junit.Counts{Skipped: 2}, ErrNoSpecs, []string{"all 2 were skipped"}},
		"the results say failed, ginkgo not": {[]junit.Case{failed}, nil, junit.Counts{Failed: 1}, ErrFailed, []string{"fails"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := newResult(Options{Options: options.Options{JUnit: "results.xml"}, Focus: "row 9"}, test.cases, test.runErr)
			if result.Counts != test.counts {
				t.Errorf("counted %v, want %v", result.Counts, test.counts)
			}
			if !errors.Is(err, test.kind) {
				t.Fatalf("got error %v, want %v", err, test.kind)
			}
			for _, text := range test.text {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in %q", text, err)
				}
			}
		})
	}
}

func TestRunNeedsAClusterThatAnswers(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	broken := filepath.Join(t.TempDir(), "broken")
	write(t, broken, "no: [yaml")
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"a kubeconfig that is not there":   {Options{Kubeconfig: "/nowhere/config"}, "/nowhere/config: no such file"},
		"a kubeconfig that cannot be read": {Options{Kubeconfig: broken}, broken},
		"a context that it does not have":  {Options{Kubeconfig: kubeconfig(t, "http://127.0.0.1:1"), Context: "other"}, `context "other" does not exist`},
		"an API server that is down":       {Options{Kubeconfig: kubeconfig(t, "http://127.0.0.1:1")}, "http://127.0.0.1:1 of kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(t.Context(), l, test.options, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q in the error, got %v", test.want, err)
			}
		})
	}
}

// TestRun runs a suite with a fake go command.
func TestRun(t *testing.T) {
	const results = `<testsuites><testsuite><testcase name="a"/><testcase name="b"><skipped message="skipped - why"/></testcase></testsuite></testsuites>`
	for name, test := range map[string]struct {
		ginkgo string // what `go tool ginkgo` does; $junit is the file to write
		want   junit.Counts
		report string
		err    string // in the error; empty: none
	}{
		"a run that passes":            {`echo '` + results + `' > "$junit"`, junit.Counts{Passed: 1, Skipped: 1}, "", ""},
		"a run with something to show": {`echo '` + results + `' > "$junit"; printf '| a |' > "${junit%.xml}.md"`, junit.Counts{Passed: 1, Skipped: 1}, "| a |", ""},
		"a run that writes no results": {"echo 'panic: boom' >&2; exit 2", junit.Counts{}, "", "panic: boom"},
		"results that are cut off":     {`echo '<testsuites>' > "$junit"`, junit.Counts{}, "", "ended without results"},
	} {
		t.Run(name, func(t *testing.T) {
			l := repository(t)
			fakeGo(t, test.ginkgo)
			stale := filepath.Join(l.Output(), "e2e", "tiny.xml")
			write(t, stale, results)
			write(t, strings.TrimSuffix(stale, ".xml")+".md", "of another run")

			result, err := Run(t.Context(), l, Options{Suite: "tiny", Kubeconfig: kubeconfig(t, apiServer(t))}, nil)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("got error %v, want %q", err, test.err)
			}
			if result.Counts != test.want {
				t.Errorf("counted %v, want %v", result.Counts, test.want)
			}
			if result.Report != test.report {
				t.Errorf("reported %q, want %q", result.Report, test.report)
			}
		})
	}
}

func TestGinkgoGetsWhatWasAskedFor(t *testing.T) {
	o, err := Options{
		Options: options.Options{RequireGates: []string{"A", "B"}, Kubectl: "/bin/kubectl", JUnit: "/out.xml", Podenv: "/bin/podenv", Cluster: "c", Minor: "v1.33", Older: []string{"v1.31", "v1.32"}, Newer: []string{"v1.34", "v1.35"}, Walks: 7, Starts: 9, SpecTimeout: 90 * time.Second}, Kubeconfig: "config", Context: "c", Focus: "story 1", LabelFilter: "!Slow", Procs: 3,
	}.complete(layout.Layout{Root: "/repo"})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	args := o.ginkgo("/x.test")
	for _, want := range []string{"--procs=3", "--timeout=1h0m0s", "--focus=story 1", "--label-filter=!Slow", "--kubeconfig=" + filepath.Join(dir, "config"),
		"--context=c", "--podenv.require-gates=A,B", "--podenv.kubectl=/bin/kubectl", "--podenv.junit=/out.xml",
		"--podenv.cli=/bin/podenv", "--podenv.cluster=c",
		"--podenv.minor=v1.33", "--podenv.older=v1.31,v1.32", "--podenv.newer=v1.34,v1.35", "--podenv.walks=7", "--podenv.starts=9", "--podenv.spec-timeout=1m30s"} {
		if !slices.Contains(args, want) {
			t.Errorf("no %q in %q", want, args)
		}
	}
	if dash, binary := slices.Index(args, "--"), slices.Index(args, "/x.test"); dash != binary+1 {
		t.Errorf("the suite's own flags must follow the binary and --: %q", args)
	}
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func kubeconfig(t testing.TB, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, file, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: %q}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {}}]
current-context: a
`, server))
	return file
}

// apiServer only answers /version: Run itself sends no other request.
func apiServer(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
