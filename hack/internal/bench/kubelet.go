package bench

import (
	"context"
	"fmt"

	"podenv.dev/hack/internal/progress"
)

// The sub-benchmarks of BenchmarkMakeEnvironmentVariables, a test of the kubelet that
// the series adds.
const (
	makeEnv         = "MakeEnvironmentVariables"
	makeLiterals    = makeEnv + "/literals"    // a container with literal values
	makeFileKeyRefs = makeEnv + "/fileKeyRefs" // one with as many from one env file
	makeRead        = makeEnv + "/read"        // one reading of the file
)

// Kubelet runs the benchmark of makeEnvironmentVariables in the tree at dir, with env
// for go, count times.
func Kubelet(ctx context.Context, dir string, env []string, count int, step *progress.Step) (*Report, error) {
	m, err := GoBench{Dir: dir, Env: env, Package: "k8s.io/kubernetes/pkg/kubelet", Bench: "^Benchmark" + makeEnv + "$", Time: "200ms", Count: count}.Run(ctx, step)
	if err != nil {
		return nil, fmt.Errorf("benchmark %s of the tree %s: %w", makeEnv, dir, err)
	}
	return kubeletReport(m, count)
}

func kubeletReport(m *Measurements, count int) (*Report, error) {
	t := Table{Name: "kubelet", Columns: []Column{
		{Name: "makeEnvironmentVariables"}, {Name: "time/op", Unit: Seconds}, {Name: "memory/op", Unit: Bytes}, {Name: "allocs/op", Unit: Number},
	}}
	took := map[string]float64{}
	for _, row := range []struct{ name, label string }{
		{makeLiterals, "100 literal values"},
		{makeRead, "one reading of the file"},
		{makeFileKeyRefs, "100 fileKeyRefs"},
	} {
		var err error
		if took[row.name], err = m.Value(row.name, secPerOp); err != nil {
			return nil, err
		}
		t.Add(row.label, took[row.name], m.cell(row.name, bytesPerOp), m.cell(row.name, allocsPerOp))
	}
	// What it cannot fall below, where the series measures it.
	if floor := makeEnv + "/os.ReadFile"; m.cell(floor, secPerOp) != nil {
		t.Add("os.ReadFile", m.cell(floor, secPerOp), m.cell(floor, bytesPerOp), m.cell(floor, allocsPerOp))
	}
	t.Notes = []string{fmt.Sprintf("Medians of %d runs on %s.", count, m.Host)}
	return &Report{Table: t, Relations: []Relation{{
		What: "100 fileKeyRefs / (100 literal values + one reading)", Asked: 1.5,
		Reached: took[makeFileKeyRefs] / (took[makeLiterals] + took[makeRead]),
	}}}, nil
}
