package htmlreport

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
)

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

// WriteTable writes changes for people.
func WriteTable(w io.Writer, changes []Change) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CHANGE\tBEFORE\tAFTER\tGROUP\tNAME")
	return errors.Join(WriteTSV(t, changes), t.Flush())
}

// WriteTSV writes a line for each change: change, before, after, group, name.
func WriteTSV(w io.Writer, changes []Change) error {
	for _, c := range changes {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.Change, c.Before, c.After, c.Group, c.Name); err != nil {
			return err
		}
	}
	return nil
}
