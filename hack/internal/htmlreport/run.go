// Package htmlreport writes what a run found as one HTML page that needs nothing else, with the data
// beside it, and compares two runs. The results come from Ginkgo's JSON reports and the events of
// `go test -json`.
package htmlreport

import (
	"cmp"
	"errors"
	"fmt"
	"math"
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
	Plots     []Plot                  `json:"plots,omitempty"`
	Texts     []Text                  `json:"texts,omitempty"`
}

// Text is a text with a title.
type Text struct {
	Title, Text string
	Table       bool `json:",omitempty"` // its lines are not broken
}

// Plot has the values of benchmarks, which the page shows on one logarithmic axis.
type Plot struct {
	Title string    `json:"title"`
	Rows  []PlotRow `json:"rows"`
}

// PlotRow has the values of a benchmark, one for each run, and the text of their median.
type PlotRow struct {
	Name   string    `json:"name"`
	Median string    `json:"median"`
	Values []float64 `json:"values"`
}

// Place returns where a value is between the smallest and the largest of the plot, in percent.
func (p Plot) Place(value float64) float64 {
	low, high := value, value
	for _, row := range p.Rows {
		low, high = min(low, slices.Min(row.Values)), max(high, slices.Max(row.Values))
	}
	if low == high {
		return 50
	}
	return 100 * math.Log(value/low) / math.Log(high/low)
}

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

// NewlyFailing is a change to a failure: it passed, was skipped, or was not there.
const NewlyFailing = "newly failing"

// Change is a result that differs between two runs.
type Change struct {
	Change string `json:"change"`
	Group  string `json:"group"`
	Name   string `json:"name"`
	Before string `json:"before"` // a state, or a duration
	After  string `json:"after"`
}

// Diff returns what differs between two runs, sorted by kind, and the limit of noise: a result is
// slower if it took more than so many times as long as before, and a second more.
func Diff(before, after *Run) (changes []Change, limit float64) {
	type key struct{ group, name string }
	old, now := map[key]Result{}, map[key]Result{}
	for _, r := range before.Results {
		old[key{r.Group, r.Name}] = r
	}
	var ratios []float64
	for _, r := range after.Results {
		now[key{r.Group, r.Name}] = r
		if o := old[key{r.Group, r.Name}]; timed(o) && timed(r) {
			ratios = append(ratios, math.Log(r.Seconds/o.Seconds))
		}
	}
	limit = noise(ratios)
	add := func(change string, r Result, was, is string) {
		changes = append(changes, Change{change, r.Group, r.Name, cmp.Or(was, "not there"), cmp.Or(is, "not there")})
	}
	for _, r := range after.Results {
		switch o := old[key{r.Group, r.Name}]; {
		case r.State == Failed && o.State != Failed:
			add(NewlyFailing, r, o.State, r.State)
		case r.State == Passed && o.State == Failed:
			add("newly passing", r, o.State, r.State)
		case timed(r) && timed(o) && r.Seconds > limit*o.Seconds && r.Seconds > o.Seconds+1:
			add("slower", r, duration(o.Seconds), duration(r.Seconds))
		}
	}
	for _, o := range before.Results {
		if r := now[key{o.Group, o.Name}]; o.State == Passed && r.State != Passed && r.State != Failed {
			add("no longer run", o, o.State, r.State)
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Change, b.Change) })
	return changes, limit
}

// timed reports whether the duration of a result says something: that of less than a second does not.
func timed(r Result) bool { return r.State == Passed && r.Seconds >= 1 }

// noise returns the ratio of durations that is still noise: the median of all, as the whole host may be slower,
// times three standard deviations, estimated from the median deviation, and at least 1.25. With fewer than ten
// ratios, which say little, it is 2.
func noise(logs []float64) float64 {
	if len(logs) < 10 {
		return 2
	}
	median := func(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }
	center := median(logs)
	var deviations []float64
	for _, l := range logs {
		deviations = append(deviations, math.Abs(l-center))
	}
	return math.Exp(center + max(math.Log(1.25), 3*1.4826*median(deviations)))
}

// Fields are what a list of changes has of each.
func (c Change) Fields() []any { return []any{c.Change, c.Before, c.After, c.Group, c.Name} }
