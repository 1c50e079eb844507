package junit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadCountsEveryShapeOfReport(t *testing.T) {
	for name, text := range map[string]string{
		"one suite": `<testsuite><testcase name="a"/><testcase name="b"><failure message="no"/></testcase>` +
			`<testcase name="c"><skipped message="why"/></testcase></testsuite>`,
		"suites": `<testsuites><testsuite><testcase name="a"/></testsuite><testsuite>` +
			`<testcase name="b"><error message="no"/></testcase><testcase name="c"><skipped/></testcase></testsuite></testsuites>`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "junit.xml")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			cases, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := Count(cases), (Counts{1, 1, 1}); got != want {
				t.Errorf("counted %v, want %v", got, want)
			}
		})
	}
}

func TestReadRefusesATruncatedReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junit.xml")
	if err := os.WriteFile(path, []byte(`<testsuite><testcase name="a">`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil {
		t.Error("no error")
	}
}

func TestCountsPrintTheClosingLine(t *testing.T) {
	if got := (Counts{3, 0, 1}).String(); got != "3 passed, 0 failed, 1 skipped" {
		t.Errorf("got %q", got)
	}
}

func TestGistSaysWhatFailed(t *testing.T) {
	expression := strings.Repeat("e", 600) // as long as Kubernetes' own for an IP address
	for name, test := range map[string]struct {
		message Message
		want    string
	}{
		"a message":             {Message{Message: "Timed out\n after 5s", Text: "log"}, "Timed out after 5s"},
		"a Go test":             {Message{Message: "Failed", Text: "=== RUN   TestA\n    a_test.go:3: got 1,\n        want 2\n--- FAIL: TestA (0.01s)\n"}, "a_test.go:3: got 1, want 2"},
		"the parent of one":     {Message{Message: "Failed", Text: "=== RUN   TestA\n--- FAIL: TestA (0.01s)\n"}, "Failed"},
		"only what was printed": {Message{Text: "panic: no"}, "panic: no"},
		"what does not match":   {Message{Message: expression + " in HOME=/"}, expression + " in HOME=/"},
		"too long":              {Message{Message: expression + expression + expression}, expression + expression + expression[:300] + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.message.Gist(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
