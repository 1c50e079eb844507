package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"

	"podenv.dev/hack/internal/htmlreport"
)

// medians are the medians of benchmarks, by name and unit. A name has neither "Benchmark" nor
// the number of processors. The units are base units: "sec/op", "B/s".
type medians map[[2]string]float64

// readMedians returns the medians in a file of results, and a plot of the times of each benchmark in it.
func readMedians(path string) (medians, []htmlreport.Plot, error) {
	var plots []htmlreport.Plot
	samples := map[[2]string][]float64{}
	file := benchfmt.Files{Paths: []string{path}}
	for file.Scan() {
		if result, ok := file.Result().(*benchfmt.Result); ok {
			for _, v := range result.Values {
				key := [2]string{procs.ReplaceAllString(result.Name.String(), ""), v.Unit}
				samples[key] = append(samples[key], v.Value)
			}
		}
	}
	if err := file.Err(); err != nil {
		return nil, nil, err
	}
	m := medians{}
	for _, key := range slices.SortedFunc(maps.Keys(samples), func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) }) {
		m[key] = benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(samples[key]), &benchmath.DefaultThresholds), 0.95).Center
		if name, ok := map[string]string{secPerOp: key[0], cpuPerOp: key[0] + " (processor)"}[key[1]]; ok {
			benchmark, _, _ := strings.Cut(name, "/")
			if title := "Times of " + benchmark; len(plots) == 0 || plots[len(plots)-1].Title != title {
				plots = append(plots, htmlreport.Plot{Title: title})
			}
			plot := &plots[len(plots)-1]
			plot.Rows = append(plot.Rows, htmlreport.PlotRow{Name: name, Median: benchunit.Scale(m[key], benchunit.Decimal) + "s", Values: samples[key]})
		}
	}
	return m, plots, nil
}

// procs is the number of processors at the end of the name of a benchmark.
var procs = regexp.MustCompile(`-\d+$`)

// goal is a limit for the ratio of benchmark results.
type goal struct {
	what        string
	numerator   []string // benchmarks whose values are added
	denominator []string // the same; if empty, the limit is for the numerator
	unit        string
	atLeast     bool // the limit is a minimum, not a maximum
	limit       float64
}

func (m medians) sum(names []string, unit string) (sum float64, err error) {
	for _, name := range names {
		v, ok := m[[2]string{name, unit}]
		if !ok {
			return 0, fmt.Errorf("no benchmark %s reported %s", name, unit)
		}
		sum += v
	}
	return sum, nil
}

// ratio returns the value that is compared with the limit.
func (g goal) ratio(m medians) (float64, error) {
	numerator, err := m.sum(g.numerator, g.unit)
	if err != nil || len(g.denominator) == 0 {
		return numerator, err
	}
	denominator, err := m.sum(g.denominator, g.unit)
	return numerator / denominator, err
}

// writeGoals writes a table of goals and results. A missed goal is no error, because a busy host may
// miss a goal that an idle one reaches.
func writeGoals(w io.Writer, goals []goal, m medians) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RELATION\tASKED\tREACHED\tMET")
	for _, g := range goals {
		ratio, err := g.ratio(m)
		if err != nil {
			return err
		}
		sign, met := "<=", ratio <= g.limit
		if g.atLeast {
			sign, met = ">=", ratio >= g.limit
		}
		fmt.Fprintf(t, "%s\t%s %.4g\t%.3g\t%s\n", g.what, sign, g.limit, ratio, map[bool]string{true: "yes", false: "no"}[met])
	}
	return t.Flush()
}

const (
	secPerOp = "sec/op"
	cpuPerOp = "cpu-sec/op" // of the API server
	upstream = "kubernetes" // in names of benchmarks of upstream's code
	envfile  = "envfile"
)

// times is the goal that one takes at least, or at most, so many times as long as other.
func times(benchmark, one, other string, atLeast bool, limit float64) goal {
	return goal{label(benchmark) + ": " + one + " / " + other, []string{benchmark + "/by=" + one}, []string{benchmark + "/by=" + other}, secPerOp, atLeast, limit}
}

// faster is the goal that ours is at least so many times as fast as upstream's code.
func faster(benchmark, ours string, limit float64) goal {
	return times(benchmark, upstream, ours, true, limit)
}

// goalsOf returns the goals of a group of benchmarks that measured m.
func goalsOf(group string, m medians) []goal {
	switch group {
	case "envfile":
		return []goal{
			faster("Read/1000_keys_of_1000", envfile, 500),
			faster("Read/100_keys_of_1000", envfile, 50),
			faster("Read/100_keys_of_100", envfile, 50),
			faster("Read/the_last_key_of_1000", envfile, 3),
			times("Read/1000_keys_of_1000", envfile, "os.ReadFile", false, 2),
			times("Read/100_keys_of_1000", envfile, "os.ReadFile", false, 2),
			times("Read/the_last_key_of_1000", envfile, "os.ReadFile", false, 2),
			times("Read/2_values_of_32_KiB", envfile, "os.ReadFile", false, 2),
			{"parse 2 values of 32 KiB: B/s", []string{"Parse/2_values_of_32_KiB/by=" + envfile}, nil, "B/s", true, 1e9},
			{"parse one key: allocations, of 1000 / of 10", []string{"Parse/the_last_key_of_1000/by=" + envfile}, []string{"Parse/the_last_key_of_10/by=" + envfile}, "allocs/op", false, 1},
		}
	case "names":
		var goals []goal
		for _, length := range []string{"4_bytes", "15_bytes", "32_bytes"} {
			// For strict names upstream has a regular expression, for relaxed ones it has none.
			goals = append(goals, faster("Strict/"+length, "envvarname", 20), faster("Relaxed/"+length, "envvarname", 1))
		}
		return goals
	case "expansion":
		goals := worstExpansion(m)
		for _, text := range []string{"a_flag", "a_line_of_80_bytes", "a_script_of_64_KiB", "variables_of_a_shell"} {
			goals = append(goals, faster("Keep/"+text, "expansion", 2))
		}
		return goals
	case "kubelet":
		const prefix = "MakeEnvironmentVariables/"
		return []goal{{"100 fileKeyRefs / (100 literal values + one reading)", []string{prefix + "fileKeyRefs"}, []string{prefix + "literals", prefix + "read"}, secPerOp, false, 1.5}}
	case "admission":
		const none, three = "Admission/no_presets", "Admission/3_of_100_presets_match"
		return []goal{
			{what: label(none) + ": s", limit: 1e-6, unit: secPerOp, numerator: []string{none}},
			{what: label(none) + ": allocations", limit: 0, unit: "allocs/op", numerator: []string{none}},
			{what: label(three) + ": s", limit: 50e-6, unit: secPerOp, numerator: []string{three}},
		}
	case "scale":
		const on = "CreatePod/by=gates-on"
		return []goal{
			{what: "creation of a pod: processor time, gates on / stock", limit: 1.01, unit: cpuPerOp, numerator: []string{on}, denominator: []string{"CreatePod/by=stock"}},
			{what: "creation of a pod, gates on: % of the processor time in files that the patches add", limit: 1, unit: "added-%CPU", numerator: []string{on}},
			{what: "creation of a pod, gates on: p99, s", limit: 1, unit: "p99-sec/op", numerator: []string{on}},
		}
	}
	return nil
}

// worstExpansion is the goal that the slowest of upstream's cases is as fast as with upstream's code.
func worstExpansion(m medians) []goal {
	var goals []goal
	for key := range m {
		if name, ours := strings.CutSuffix(key[0], "/by=expansion"); ours && key[1] == secPerOp && strings.HasPrefix(name, "Expand/") {
			goals = append(goals, faster(name, "expansion", 1))
		}
	}
	if len(goals) == 0 {
		return []goal{faster("Expand/whole_string", "expansion", 1)} // its error says that nothing ran
	}
	worst := slices.MinFunc(goals, func(a, b goal) int {
		ratioA, _ := a.ratio(m)
		ratioB, _ := b.ratio(m)
		return cmp.Or(cmp.Compare(ratioA, ratioB), cmp.Compare(a.what, b.what))
	})
	worst.what += ", the worst of upstream's cases"
	return []goal{worst}
}

// label turns "Read/1000_keys_of_1000" into "read 1000 keys of 1000".
func label(benchmark string) string {
	function, sub, _ := strings.Cut(benchmark, "/")
	return strings.ToLower(function) + " " + strings.ReplaceAll(sub, "_", " ")
}
