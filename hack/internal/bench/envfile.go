package bench

import (
	"context"
	"fmt"
	"strings"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

const envfile = "envfile"

// readers are the modules that the other readers come from.
var readers = []peer{
	{upstream, "k8s.io/kubernetes"},
	{"godotenv", "github.com/joho/godotenv"},
	{"compose-go", "github.com/compose-spec/compose-go/v2"},
}

var readerAsks = []ask{
	timesFaster("Read/1000_keys_of_1000", envfile, upstream, 500),
	timesFaster("Read/100_keys_of_1000", envfile, upstream, 50),
	timesFaster("Read/100_keys_of_100", envfile, upstream, 50),
	timesFaster("Read/the_last_key_of_1000", envfile, upstream, 3),
	within("1000_keys_of_1000", "os.ReadFile", 2),
	within("100_keys_of_1000", "os.ReadFile", 2),
	within("the_last_key_of_1000", "os.ReadFile", 2),
	within("2_values_of_32_KiB", "os.ReadFile", 2),
	{
		what: "parse 2 values of 32 KiB: GB/s", atLeast: true, asked: 1,
		over: "Parse/2_values_of_32_KiB/by=" + envfile, unit: bytesPerSec, scale: 1e-9,
	},
	{
		what: "parse one key: allocations, of 1000 / of 10", asked: 1,
		over: "Parse/the_last_key_of_1000/by=" + envfile, under: "Parse/the_last_key_of_10/by=" + envfile, unit: allocsPerOp,
	},
}

// within asks that reading takes at most so many times as long as another's.
func within(of, other string, times float64) ask {
	name := "Read/" + of
	return ask{
		what: caseName(name) + ": " + envfile + " / " + other, asked: times,
		over: name + "/by=" + envfile, under: name + "/by=" + other, unit: secPerOp,
	}
}

// EnvFile runs the benchmarks of test/bench count times: every reader of env files,
// on the same files.
func EnvFile(ctx context.Context, l layout.Layout, count int, step *progress.Step) (*Report, error) {
	m, err := GoBench{Dir: l.Root, Package: "./test/bench", Bench: "^Benchmark(Read|Parse)$", Time: "200ms", Count: count}.Run(ctx, step)
	if err != nil {
		return nil, err
	}
	note, err := versions(ctx, l, readers)
	if err != nil {
		return nil, err
	}
	table, err := readersTable(m)
	if err != nil {
		return nil, err
	}
	table.Notes = []string{note, fmt.Sprintf("Medians of %d runs on %s.", count, m.Host)}
	reached, err := relations(m, readerAsks)
	if err != nil {
		return nil, err
	}
	return &Report{Table: table, Relations: reached}, nil
}

// readersTable has a row for each benchmark Read/CASE/by=CONTESTANT and Parse/….
func readersTable(m *Measurements) (Table, error) {
	t := Table{Name: "envfile", Columns: []Column{
		{Name: "case"}, {Name: "contestant"}, {Name: "time/op", Unit: Seconds}, {Name: "times ours", Unit: Times},
		{Name: "memory/op", Unit: Bytes}, {Name: "allocs/op", Unit: Number}, {Name: "speed", Unit: Speed},
	}}
	for _, name := range m.Names {
		of, contestant, ok := strings.Cut(name, "/by=")
		if !ok {
			return t, fmt.Errorf("benchmark %s names no contestant: call it …/by=CONTESTANT", name)
		}
		took, err := m.Value(name, secPerOp)
		if err != nil {
			return t, err
		}
		mine, err := m.Value(of+"/by="+envfile, secPerOp)
		if err != nil {
			return t, err
		}
		t.Add(caseName(of), contestant, took, took/mine, m.cell(name, bytesPerOp), m.cell(name, allocsPerOp), m.cell(name, bytesPerSec))
	}
	return t, nil
}

// caseName makes "read 1000 keys of 1000" of "Read/1000_keys_of_1000".
func caseName(benchmark string) string {
	verb, of, _ := strings.Cut(benchmark, "/")
	return strings.ToLower(verb) + " " + strings.ReplaceAll(of, "_", " ")
}
