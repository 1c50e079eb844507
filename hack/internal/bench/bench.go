// Package bench compares what benchmarks measured with what was asked of them.
package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// Medians are the medians of benchmarks by name, without "Benchmark" and the number of
// processors, and by unit, in base units: "sec/op", "B/s".
type Medians map[[2]string]float64

// Read reads a file in the Go benchmark format.
func Read(path string) (Medians, error) {
	samples := map[[2]string][]float64{}
	file := benchfmt.Files{Paths: []string{path}}
	for file.Scan() {
		if result, ok := file.Result().(*benchfmt.Result); ok {
			for _, v := range result.Values {
				key := [2]string{nameOf(result.Name), v.Unit}
				samples[key] = append(samples[key], v.Value)
			}
		}
	}
	if err := file.Err(); err != nil {
		return nil, err
	}
	medians := Medians{}
	for key, values := range samples {
		medians[key] = benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95).Center
	}
	return medians, nil
}

// nameOf is name without the number of processors behind it.
func nameOf(name benchfmt.Name) string {
	base, parts := name.Parts()
	for _, part := range parts {
		if part[0] == '/' {
			base = append(base, part...)
		}
	}
	return string(base)
}

// Goal is what is asked of a relation between benchmarks.
type Goal struct {
	What    string
	Over    []string // benchmarks, whose values are added
	Under   []string // the same; without any, the value of Over itself counts
	Unit    string
	AtLeast bool // or at most
	Asked   float64
}

func (m Medians) sum(names []string, unit string) (sum float64, err error) {
	for _, name := range names {
		v, ok := m[[2]string{name, unit}]
		if !ok {
			return 0, fmt.Errorf("no benchmark %s reported %s", name, unit)
		}
		sum += v
	}
	return sum, nil
}

// Reached is the value of the relation.
func (g Goal) Reached(m Medians) (float64, error) {
	over, err := m.sum(g.Over, g.Unit)
	if err != nil || len(g.Under) == 0 {
		return over, err
	}
	under, err := m.sum(g.Under, g.Unit)
	return over / under, err
}

// Write writes what was asked for and what was reached. It informs: a loaded host may miss
// what a quiet one reaches.
func Write(w io.Writer, goals []Goal, m Medians) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RELATION\tASKED\tREACHED\tMET")
	for _, g := range goals {
		reached, err := g.Reached(m)
		if err != nil {
			return err
		}
		sign, met := "<=", reached <= g.Asked
		if g.AtLeast {
			sign, met = ">=", reached >= g.Asked
		}
		fmt.Fprintf(t, "%s\t%s %.4g\t%.3g\t%s\n", g.What, sign, g.Asked, reached, map[bool]string{true: "yes", false: "no"}[met])
	}
	return t.Flush()
}

// label makes "read 1000 keys of 1000" of "Read/1000_keys_of_1000".
func label(benchmark string) string {
	verb, of, _ := strings.Cut(benchmark, "/")
	return strings.ToLower(verb) + " " + strings.ReplaceAll(of, "_", " ")
}
