// Package htmlreport writes what a run found as one HTML page that needs nothing else, with the data
// beside it, and compares two runs. The results come from Ginkgo's JSON reports and the events of
// `go test -json`.
package htmlreport

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/test/e2e/options"
)

// The states of a result.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// Run is a run of a verb: on what it ran, and what it found.
type Run struct {
	Command   string                  `json:"command"`
	On        []Text                  `json:"on"` // series, host
	Start     time.Time               `json:"start"`
	Seconds   float64                 `json:"seconds"`
	Problem   string                  `json:"problem,omitempty"` // the error of the verb
	Results   []Result                `json:"results,omitempty"`
	Spans     []Span                  `json:"spans,omitempty"`
	Documents []featuregates.Document `json:"documents,omitempty"`
	Tables    []options.Table         `json:"tables,omitempty"`
	Texts     []Text                  `json:"texts,omitempty"`
}

// Text is a text with a title.
type Text struct{ Title, Text string }

// Result is the result of a spec or a test.
type Result struct {
	Group   string    `json:"group"` // a check or a suite
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Start   time.Time `json:"start,omitzero"`
	Seconds float64   `json:"seconds"`
	Why     string    `json:"why,omitempty"`     // it failed or was skipped
	Details []Text    `json:"details,omitempty"` // of a failure
	Labels  []string  `json:"labels,omitempty"`
}

// Gist is the beginning of Why, on one line.
func (r Result) Gist() string { return (&junit.Message{Text: r.Why}).Gist() }

// Span is something that took time. Spans of one lane follow each other.
type Span struct {
	Lane, Name, State string
	Start             time.Time
	Seconds           float64
}

// Showing returns the results that show a row of a document.
func (r *Run) Showing(document, row string) []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(result Result) bool { return !slices.Contains(result.Labels, document+":"+row) })
}

// Groups returns the results by group, in their order.
func (r *Run) Groups() (groups [][]Result) {
	for _, result := range r.Results {
		i := slices.IndexFunc(groups, func(group []Result) bool { return group[0].Group == result.Group })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], result)
	}
	return groups
}

// Count counts results.
func Count(results []Result) (c junit.Counts) {
	count := map[string]*int{Passed: &c.Passed, Failed: &c.Failed, Skipped: &c.Skipped}
	for _, r := range results {
		*count[r.State]++
	}
	return c
}

// Host describes this host: its processors, memory and kernel.
func Host() string {
	var info unix.Sysinfo_t
	var name unix.Utsname
	_ = errors.Join(unix.Sysinfo(&info), unix.Uname(&name)) // they fail for bad addresses only
	return fmt.Sprintf("%d processors, %.1f GiB of memory, Linux %s", runtime.NumCPU(), float64(info.Totalram)*float64(info.Unit)/(1<<30), unix.ByteSliceToString(name.Release[:]))
}
