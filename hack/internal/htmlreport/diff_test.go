package htmlreport

import (
	"fmt"
	"testing"
)

// of returns a run with results of these durations in seconds.
func of(seconds ...float64) *Run {
	r := &Run{}
	for i, s := range seconds {
		r.Results = append(r.Results, Result{Name: fmt.Sprint(i), State: Passed, Seconds: s})
	}
	return r
}

func TestWhatIsSlowerThanNoise(t *testing.T) {
	before := of(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10)
	for name, test := range map[string]struct {
		before, after *Run
		slower        []string
	}{
		"nothing, where all are alike":                       {before, before, nil},
		"one that stands out":                                {before, of(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 13), []string{"11"}},
		"nothing, where the whole host is slower":            {before, of(20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20), nil},
		"nothing, where the others vary as much":             {before, of(5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 19), nil},
		"nothing below a second":                             {of(0.01, 0.1), of(0.9, 1.05), nil},
		"of a few, what took more than twice as long":        {of(10, 10), of(15, 25), []string{"1"}},
		"nothing that took less than a second longer":        {of(1, 1), of(1.5, 1.99), nil},
		"a slow host does not hide one that is slower still": {before, of(20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 60), []string{"11"}},
	} {
		t.Run(name, func(t *testing.T) {
			var slower []string
			changes, limit := Diff(test.before, test.after)
			for _, c := range changes {
				slower = append(slower, c.Name)
			}
			if fmt.Sprint(slower) != fmt.Sprint(test.slower) {
				t.Errorf("slower than %.2f times as long: %v, want %v", limit, slower, test.slower)
			}
		})
	}
}

func TestATestThatFailsAndIsNewIsNewlyFailing(t *testing.T) {
	changes, _ := Diff(of(), &Run{Results: []Result{{Name: "new", State: Failed}}})
	if len(changes) != 1 || changes[0].Change != NewlyFailing || changes[0].Before != "not there" {
		t.Errorf("%v", changes)
	}
}
