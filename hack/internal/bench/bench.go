// Package bench compares benchmark results with goals.
package bench

import (
	"fmt"
	"io"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// Medians are the medians of benchmarks, by name and unit. A name has neither "Benchmark" nor
// the number of processors. The units are base units: "sec/op", "B/s".
type Medians map[[2]string]float64

// Read reads a file in the Go benchmark format.
func Read(path string) (Medians, error) {
	samples := map[[2]string][]float64{}
	file := benchfmt.Files{Paths: []string{path}}
	for file.Scan() {
		if result, ok := file.Result().(*benchfmt.Result); ok {
			for _, v := range result.Values {
				key := [2]string{withoutProcs(result.Name), v.Unit}
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

// withoutProcs returns name without the number of processors at its end.
func withoutProcs(name benchfmt.Name) string {
	base, parts := name.Parts()
	for _, part := range parts {
		if part[0] == '/' {
			base = append(base, part...)
		}
	}
	return string(base)
}

// Goal is a limit for the ratio of benchmark results.
type Goal struct {
	What        string
	Numerator   []string // benchmarks whose values are added
	Denominator []string // the same; if empty, the limit is for the numerator
	Unit        string
	AtLeast     bool // the limit is a minimum, not a maximum
	Limit       float64
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

// Ratio returns the value that is compared with the limit.
func (g Goal) Ratio(m Medians) (float64, error) {
	numerator, err := m.sum(g.Numerator, g.Unit)
	if err != nil || len(g.Denominator) == 0 {
		return numerator, err
	}
	denominator, err := m.sum(g.Denominator, g.Unit)
	return numerator / denominator, err
}

// Write writes a table of goals and results. A missed goal is no error, because a busy host may
// miss a goal that an idle one reaches.
func Write(w io.Writer, goals []Goal, m Medians) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RELATION\tASKED\tREACHED\tMET")
	for _, g := range goals {
		ratio, err := g.Ratio(m)
		if err != nil {
			return err
		}
		sign, met := "<=", ratio <= g.Limit
		if g.AtLeast {
			sign, met = ">=", ratio >= g.Limit
		}
		fmt.Fprintf(t, "%s\t%s %.4g\t%.3g\t%s\n", g.What, sign, g.Limit, ratio, map[bool]string{true: "yes", false: "no"}[met])
	}
	return t.Flush()
}
