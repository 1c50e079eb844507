package main

import (
	"testing"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/series"
)

// A name that no check has would be taken for one that is not run this time.
func TestWhatACheckNeedsStandsBeforeIt(t *testing.T) {
	run := &testRun{
		app:  &app{layout: layout.Layout{Root: t.TempDir()}},
		p:    &pipeline.Pipeline{Series: series.Series{Name: "v1.33"}},
		full: true,
	}
	seen := map[string]bool{}
	for _, check := range run.checks() {
		for _, before := range check.Needs {
			if !seen[before] {
				t.Errorf("%q needs %q, which does not stand before it", check.Name, before)
			}
		}
		if seen[check.Name] {
			t.Errorf("two checks are called %q", check.Name)
		}
		seen[check.Name] = true
	}
}
