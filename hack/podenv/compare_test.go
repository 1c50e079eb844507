package main

import (
	"slices"
	"strings"
	"testing"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
)

func TestFixesNameTheSpecsOfTheirWholeFolder(t *testing.T) {
	s, err := series.Load(layout.MustFind(), "v1.37")
	if err != nil {
		t.Fatal(err)
	}
	if needs, given, err := fixes(s); needs != nil || given != nil || err != nil {
		t.Errorf("of a series without fixes: %v, %v, %v", needs, given, err)
	}
	folder := "../../" + series.FixesFolder(s.Name)
	if s.Fixes, err = series.FindFixes([]string{folder}); err != nil {
		t.Fatal(err)
	}
	s.Fixes = s.Fixes[1:3]
	needs, given, err := fixes(s)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(given, []string{"0002", "0003"}) || len(needs) < 10 {
		t.Errorf("given %v, and %d fixes name specs", given, len(needs))
	}
	if !slices.ContainsFunc(needs["0001"], func(spec string) bool { return strings.HasPrefix(spec, "attack: ") && !strings.Contains(spec, "\n") }) {
		t.Errorf("the specs of 0001: %q", needs["0001"])
	}
}
