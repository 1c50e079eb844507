package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// GoBench runs the Go benchmarks of one package several times.
type GoBench struct {
	Dir     string   // where go runs
	Env     []string // for go
	Package string   // as go build takes it
	Bench   string   // regular expression, as go test -bench takes it
	Time    string   // how long each benchmark runs, as go test -benchtime takes it
	Count   int      // how many times all of them run
}

// Measurements are the medians of benchmarks, in the order in which they ran.
type Measurements struct {
	Names  []string // without "Benchmark" and the number of processors
	Host   string   // goos, goarch and processor, as go test prints them
	values map[key]float64
}

type key struct{ name, unit string }

// Units of benchmarks, as go test prints them but in base units.
const (
	secPerOp    = "sec/op"
	bytesPerOp  = "B/op"
	allocsPerOp = "allocs/op"
	bytesPerSec = "B/s"
)

// Value returns the median of the benchmark called name; a benchmark that did not
// run, or does not report the unit, is an error.
func (m *Measurements) Value(name, unit string) (float64, error) {
	v, ok := m.values[key{name, unit}]
	if !ok {
		return 0, fmt.Errorf("no benchmark %s reported %s", name, unit)
	}
	return v, nil
}

// cell is Value for a table: nil where there is none.
func (m *Measurements) cell(name, unit string) any {
	if v, ok := m.values[key{name, unit}]; ok {
		return v
	}
	return nil
}

// Run compiles the package's tests once and runs the benchmarks g.Count times, all of
// them each time, so that what a host does beside hits all alike.
func (g GoBench) Run(ctx context.Context, step *progress.Step) (*Measurements, error) {
	scratch, err := os.MkdirTemp("", "podenv-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	binary := filepath.Join(scratch, "bench.test")
	step.Now("compiling the tests of %s", g.Package)
	if err := run.Command(ctx, "go", "test", "-c", "-o", binary, g.Package).Dir(g.Dir).Env(g.Env...).Log(step.Log()).Run(); err != nil {
		return nil, err
	}
	// Tests expect to run where their sources are.
	where, err := run.Command(ctx, "go", "list", "-f={{.Dir}}", g.Package).Dir(g.Dir).Env(g.Env...).Output()
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for i := range g.Count {
		step.Now("run %d of %d", i+1, g.Count)
		out, err := run.Command(ctx, binary, "-test.run=^$", "-test.bench="+g.Bench, "-test.benchmem",
			"-test.benchtime="+g.Time, "-test.timeout=30m").Dir(where).Log(step.Log()).Output()
		if err != nil {
			return nil, err
		}
		all.WriteString(out + "\n")
	}
	return parse(&all)
}

// parse reads what benchmarks print.
func parse(output io.Reader) (*Measurements, error) {
	m := &Measurements{values: map[key]float64{}}
	samples := map[key][]float64{}
	seen := map[string]bool{}
	reader := benchfmt.NewReader(output, "go test -bench")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // a line of something else
		}
		name := benchmarkName(result.Name)
		if !seen[name] {
			seen[name] = true
			m.Names = append(m.Names, name)
		}
		m.Host = fmt.Sprintf("%s/%s, %s", result.GetConfig("goos"), result.GetConfig("goarch"), result.GetConfig("cpu"))
		for _, v := range result.Values {
			samples[key{name, v.Unit}] = append(samples[key{name, v.Unit}], v.Value)
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	if len(m.Names) == 0 {
		return nil, fmt.Errorf("no benchmark ran")
	}
	for k, values := range samples {
		sample := benchmath.NewSample(values, &benchmath.DefaultThresholds)
		m.values[k] = benchmath.AssumeNothing.Summary(sample, 0.95).Center // the median
	}
	return m, nil
}

// benchmarkName is name without the number of processors behind it.
func benchmarkName(name benchfmt.Name) string {
	base, parts := name.Parts()
	var b strings.Builder
	b.Write(base)
	for _, part := range parts {
		if part[0] == '/' {
			b.Write(part)
		}
	}
	return b.String()
}
