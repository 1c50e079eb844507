package htmlreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"podenv.dev/test/e2e/options"
)

// Attribute is the attribute of a test that names a JSON report of Ginkgo, whose specs are its subtests.
const Attribute = "ginkgo"

// event is an event of `go test -json`.
type event struct {
	Time                                                  time.Time
	Action, Package, ImportPath, Test, Output, Key, Value string
	Elapsed                                               float64
}

// test is a test, or a package, with its events.
type test struct {
	Result
	names   []string // from the top one to its own; none of a package
	output  strings.Builder
	reports []string
	sub     bool // it has subtests
	failing bool // one of them failed
}

// AddGoTest adds the tests in a file with events of `go test -json`. A test with subtests is a
// result only if it failed and none of them did. The second of the names of a test is its group.
func (r *Run) AddGoTest(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	tests, keys := map[string]*test{}, []string(nil)
	for events := json.NewDecoder(f); ; {
		var e event
		if err := events.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("reading the events of go test in %s: %w", file, err)
		}
		if e.ImportPath != "" { // build-output and build-fail
			e.Package, _, _ = strings.Cut(e.ImportPath, " ")
			e.Action = strings.TrimPrefix(e.Action, "build-")
		}
		key := e.Package + "/" + e.Test
		if tests[key] == nil {
			tests[key] = newTest(e)
			keys = append(keys, key)
		}
		tests[key].add(e)
	}
	specs := map[string]Result{} // by the keys of their tests
	for _, key := range keys {
		t := tests[key]
		for parent := key; strings.Contains(parent, "/"); {
			parent = parent[:strings.LastIndex(parent, "/")]
			for _, p := range []*test{tests[parent], tests[parent+"/"]} { // a test, a package
				if p != nil && p != t {
					p.sub, p.failing = true, p.failing || t.State == Failed
				}
			}
		}
		if err := r.addReports(key, t.reports, specs); err != nil {
			return err
		}
	}
	for _, key := range keys {
		r.addTest(tests[key], specs[key])
	}
	return nil
}

func newTest(e event) *test {
	t := &test{Result: Result{Group: e.Package, Name: e.Test, Start: e.Time, State: Failed, Why: "it did not end"}}
	if e.Test != "" {
		t.names = strings.Split(strings.ReplaceAll(e.Test, "_", " "), "/")
		t.Name = strings.Join(t.names[min(2, len(t.names)-1):], "/")
	}
	if len(t.names) > 1 {
		t.Group = t.names[1]
	}
	return t
}

func (t *test) add(e event) {
	switch e.Action {
	case "output":
		t.output.WriteString(e.Output)
	case "attr":
		if e.Key == Attribute {
			t.reports = append(t.reports, e.Value)
		}
	case "pass":
		t.State, t.Seconds, t.Why = Passed, e.Elapsed, ""
	case "fail", "skip":
		t.State, t.Seconds, t.Why = map[string]string{"fail": Failed, "skip": Skipped}[e.Action], e.Elapsed, strings.TrimSpace(t.output.String())
	}
}

// addReports adds the tables in reports of Ginkgo, and the specs to specs.
func (r *Run) addReports(key string, reports []string, specs map[string]Result) error {
	for _, file := range reports {
		var of Run
		if err := of.AddGinkgo(file); err != nil {
			return err
		}
		for _, spec := range of.Results {
			specs[key+"/"+strings.ReplaceAll(spec.Group+"."+spec.Name, " ", "_")] = spec
		}
		r.Tables = append(r.Tables, of.Tables...)
	}
	return nil
}

// addTest adds t, unless its subtests say more. What is a spec of Ginkgo has the details of that.
func (r *Run) addTest(t *test, spec Result) {
	if n := len(t.names); n == 2 || n == 1 && !t.sub {
		r.Spans = append(r.Spans, Span{t.Group, t.Name, t.State, t.Start, t.Seconds})
	}
	if t.failing || t.State != Failed && (t.sub || t.names == nil) {
		return
	}
	if spec.Name != "" {
		t.Name, t.Start, t.Seconds, t.Details, t.Labels = spec.Name, spec.Start, spec.Seconds, spec.Details, spec.Labels
	}
	r.Results = append(r.Results, t.Result)
}

// AddGinkgo adds the specs of a JSON report of Ginkgo that ran, or say why they did not.
func (r *Run) AddGinkgo(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var reports []types.Report
	if err := json.Unmarshal(data, &reports); err != nil {
		return fmt.Errorf("reading the report of Ginkgo %s: %w", file, err)
	}
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			r.addSpec(report.SuiteDescription, spec)
		}
	}
	return nil
}

func (r *Run) addSpec(suite string, spec types.SpecReport) {
	// --focus and --label-filter leave specs skipped without a message.
	selected := spec.LeafNodeType == types.NodeTypeIt && (spec.State == types.SpecStatePassed || spec.Failure.Message != "")
	if !selected && !spec.Failed() {
		return
	}
	result := Result{Group: suite, Name: spec.FullText(), State: Skipped, Start: spec.StartTime, Seconds: spec.RunTime.Seconds(), Why: spec.Failure.Message, Labels: spec.Labels()}
	if result.Name == "" {
		result.Name = spec.LeafNodeType.String()
	}
	if spec.Failed() {
		result.State, result.Details = Failed, details(spec)
	} else if spec.State == types.SpecStatePassed {
		result.State = Passed
	}
	r.Results = append(r.Results, result)
	r.Spans = append(r.Spans, Span{fmt.Sprintf("%s, process %d", suite, spec.ParallelProcess), result.Name, result.State, spec.StartTime, result.Seconds})
	for _, entry := range spec.ReportEntries {
		var table options.Table
		if entry.Name == options.TableEntry && json.Unmarshal([]byte(entry.Value.AsJSON), &table) == nil {
			r.Tables = append(r.Tables, table)
		}
	}
}

// details are the steps of a failed spec, and what it reported.
func details(spec types.SpecReport) (all []Text) {
	add := func(title, text string) {
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, Text{Title: title, Text: text})
		}
	}
	var steps strings.Builder
	for _, event := range spec.SpecEvents.WithType(types.SpecEventByStart) {
		at := event.TimelineLocation.Time
		fmt.Fprintf(&steps, "%s  %+7.1f s  %s\n", at.UTC().Format("15:04:05"), at.Sub(spec.StartTime).Seconds(), event.Message)
	}
	fmt.Fprintf(&steps, "%s  %+7.1f s  failed at %s\n", spec.EndTime.UTC().Format("15:04:05"), spec.RunTime.Seconds(), spec.Failure.Location)
	add("steps", steps.String())
	add("panic", spec.Failure.ForwardedPanic)
	for _, failure := range spec.AdditionalFailures {
		add("also failed", failure.Failure.Message)
	}
	for _, entry := range spec.ReportEntries {
		if entry.Name != options.TableEntry {
			add(entry.Name, entry.StringRepresentation())
		}
	}
	add("output of the spec", spec.CapturedGinkgoWriterOutput)
	add("standard output", spec.CapturedStdOutErr)
	return all
}
