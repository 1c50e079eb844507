package htmlreport

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"podenv.dev/test/e2e/options"
)

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
			all = append(all, Text{title, text})
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
