package bench

import (
	"context"
	"fmt"
	"strings"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// duel measures a package of ours beside the code of Kubernetes that it takes the place
// of.
type duel struct {
	mine   string // our contestant
	bench  string // regular expression, as go test -bench takes it
	time   string // how long each benchmark runs, as go test -benchtime takes it
	module string // of upstream's code
	asks   func(*Measurements) ([]Relation, error)
}

// run runs the duel's benchmarks of test/bench count times. The report's table is
// called name.
func (d duel) run(ctx context.Context, name string, l layout.Layout, count int, step *progress.Step) (*Report, error) {
	m, err := GoBench{Dir: l.Root, Package: "./test/bench", Bench: d.bench, Time: d.time, Count: count}.Run(ctx, step)
	if err != nil {
		return nil, err
	}
	note, err := versions(ctx, l, []peer{{upstream, d.module}})
	if err != nil {
		return nil, err
	}
	table, err := d.table(name, m)
	if err != nil {
		return nil, err
	}
	table.Notes = []string{note, fmt.Sprintf("Medians of %d runs on %s.", count, m.Host)}
	reached, err := d.asks(m)
	if err != nil {
		return nil, err
	}
	return &Report{Table: table, Relations: reached}, nil
}

// table has a row for each case that both have a benchmark CASE/by=CONTESTANT of.
func (d duel) table(name string, m *Measurements) (Table, error) {
	t := Table{Name: name, Columns: []Column{
		{Name: "case"}, {Name: d.mine, Unit: Seconds}, {Name: upstream, Unit: Seconds}, {Name: "times ours", Unit: Times},
		{Name: d.mine + " allocs/op", Unit: Number}, {Name: upstream + " allocs/op", Unit: Number},
	}}
	for _, of := range casesOf(d.mine, m) {
		mine, theirs := of+"/by="+d.mine, of+"/by="+upstream
		took, err := m.Value(mine, secPerOp)
		if err != nil {
			return t, err
		}
		theyTook, err := m.Value(theirs, secPerOp)
		if err != nil {
			return t, err
		}
		t.Add(caseName(of), took, theyTook, theyTook/took, m.cell(mine, allocsPerOp), m.cell(theirs, allocsPerOp))
	}
	return t, nil
}

// casesOf returns what a contestant was measured on.
func casesOf(contestant string, m *Measurements) []string {
	var cases []string
	for _, name := range m.Names {
		if of, ok := strings.CutSuffix(name, "/by="+contestant); ok {
			cases = append(cases, of)
		}
	}
	return cases
}
