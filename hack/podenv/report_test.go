package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/htmlreport"
	"podenv.dev/hack/internal/layout"
)

// reportOf runs a verb that adds to a report, and returns the report that was written; nil if none was.
func reportOf(t *testing.T, do func(*htmlreport.Run) error) (*htmlreport.Run, error) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"patches/v1.33/go.mod":            "module podenv.dev/patches/v1.33\n\nrequire k8s.io/kubernetes v1.33.13\n",
		"patches/v1.33/0001-a.patch":      "",
		"_output/report/index.json":       `{"command": "an earlier one"}`,
		"_output/report/an-old-page.html": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{series: "v1.33", layout: layout.Layout{Root: root}}
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"/bin/podenv", "walk", "Gate", "--focus", "row 3", "--run=parallel,serial"}
	runErr := a.reported(do)
	report, err := htmlreport.Read(filepath.Join(root, "_output", "report"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return report, runErr
}

func TestAVerbIsReportedAlsoIfItFailed(t *testing.T) {
	failed := errors.New("the kubelet is away")
	report, err := reportOf(t, func(r *htmlreport.Run) error {
		r.Results = []htmlreport.Result{{Name: "spec", State: htmlreport.Failed, Labels: []string{"KEP-3721:3"}}}
		return failed
	})
	if !errors.Is(err, failed) || report == nil {
		t.Fatalf("%v, %v", report, err)
	}
	if report.Command != "podenv walk Gate --focus 'row 3' --run=parallel,serial" || report.Problem != failed.Error() {
		t.Errorf("command %q, problem %q", report.Command, report.Problem)
	}
	if on := report.On[0].Text; on != "v1.33: v1.33.13 with 1 patches" {
		t.Errorf("on %q", on)
	}
	if len(report.Documents) != 1 || report.Documents[0].Name != "KEP-3721" || len(report.Documents[0].Rows) < 7 {
		t.Errorf("documents: %v", report.Documents)
	}
}

func TestARunWithoutResultsHasNoReport(t *testing.T) {
	failed := errors.New("no cluster")
	if report, err := reportOf(t, func(*htmlreport.Run) error { return failed }); report != nil || !errors.Is(err, failed) {
		t.Errorf("%v, %v", report, err)
	}
}

func TestRowsOfSpecsHaveTheDetailsOfThoseThatRan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "parallel.json")
	if err := os.WriteFile(file, []byte(`[{"SuiteDescription": "Kubernetes e2e suite", "SpecReports": [
		{"LeafNodeType": "It", "LeafNodeText": "fails", "State": "failed", "Failure": {"Message": "timed out"}, "CapturedGinkgoWriterOutput": "the log"}
	]}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	var report htmlreport.Run
	err := addRows(&report, "conformance", []conformance.Row{
		{Spec: "passed earlier", State: conformance.Passed}, {Spec: "fails", State: conformance.Failed, Why: "gist"}, {Spec: "left out", State: conformance.LeftOut},
		{Spec: "flaky", State: conformance.Flaky, Why: "failed before"},
	}, file, file+".not-there")
	if err != nil {
		t.Fatal(err)
	}
	if got := htmlreport.Count(report.Results).String(); got != "2 passed, 1 failed, 1 skipped" {
		t.Error(got)
	}
	if r := report.Results[1]; r.Group != "conformance" || r.Why != "timed out" || len(r.Details) == 0 {
		t.Errorf("%+v", r)
	}
}
