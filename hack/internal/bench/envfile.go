package bench

import (
	"context"
	"fmt"
	"strings"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

const ours = "envfile"

// peers are the modules that the other contestants of test/bench come from.
var peers = []struct{ contestant, module string }{
	{"kubernetes", "k8s.io/kubernetes"},
	{"godotenv", "github.com/joho/godotenv"},
	{"compose-go", "github.com/compose-spec/compose-go/v2"},
}

// ask is a relation that is asked for between two benchmarks of test/bench.
type ask struct {
	what        string
	over, under string // benchmarks; without under, over's own value counts
	unit        string
	scale       float64 // of the value; 1 unless set
	atLeast     bool
	asked       float64
}

var asks = []ask{
	timesFaster("1000_keys_of_1000", "kubernetes", 500),
	timesFaster("100_keys_of_1000", "kubernetes", 50),
	timesFaster("100_keys_of_100", "kubernetes", 50),
	timesFaster("the_last_key_of_1000", "kubernetes", 3),
	within("1000_keys_of_1000", "os.ReadFile", 2),
	within("100_keys_of_1000", "os.ReadFile", 2),
	within("the_last_key_of_1000", "os.ReadFile", 2),
	within("2_values_of_32_KiB", "os.ReadFile", 2),
	{
		what: "parse 2 values of 32 KiB: GB/s", atLeast: true, asked: 1,
		over: "Parse/2_values_of_32_KiB/by=" + ours, unit: bytesPerSec, scale: 1e-9,
	},
	{
		what: "parse one key: allocations, of 1000 / of 10", asked: 1,
		over: "Parse/the_last_key_of_1000/by=" + ours, under: "Parse/the_last_key_of_10/by=" + ours, unit: allocsPerOp,
	},
}

// timesFaster asks that reading is at least so many times as fast as another's.
func timesFaster(of, than string, times float64) ask {
	name := "Read/" + of
	return ask{
		what: caseName(name) + ": " + than + " / " + ours, atLeast: true, asked: times,
		over: name + "/by=" + than, under: name + "/by=" + ours, unit: secPerOp,
	}
}

// within asks that reading takes at most so many times as long as another's.
func within(of, other string, times float64) ask {
	name := "Read/" + of
	return ask{
		what: caseName(name) + ": " + ours + " / " + other, asked: times,
		over: name + "/by=" + ours, under: name + "/by=" + other, unit: secPerOp,
	}
}

// EnvFile runs the benchmarks of test/bench count times: every reader of env files,
// on the same files.
func EnvFile(ctx context.Context, l layout.Layout, count int, step *progress.Step) (*Report, error) {
	m, err := GoBench{Dir: l.Root, Package: "./test/bench", Bench: ".", Time: "200ms", Count: count}.Run(ctx, step)
	if err != nil {
		return nil, err
	}
	note, err := versions(ctx, l)
	if err != nil {
		return nil, err
	}
	table, err := readersTable(m)
	if err != nil {
		return nil, err
	}
	table.Notes = []string{note, fmt.Sprintf("Medians of %d runs on %s.", count, m.Host)}
	relations, err := readerRelations(m)
	if err != nil {
		return nil, err
	}
	return &Report{Table: table, Relations: relations}, nil
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
		mine, err := m.Value(of+"/by="+ours, secPerOp)
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

func readerRelations(m *Measurements) ([]Relation, error) {
	var relations []Relation
	for _, a := range asks {
		reached, err := m.Value(a.over, a.unit)
		if err != nil {
			return nil, err
		}
		if a.under != "" {
			under, err := m.Value(a.under, a.unit)
			if err != nil {
				return nil, err
			}
			reached /= under
		}
		if a.scale != 0 {
			reached *= a.scale
		}
		relations = append(relations, Relation{What: a.what, AtLeast: a.atLeast, Asked: a.asked, Reached: reached})
	}
	return relations, nil
}

// versions says which peers were measured.
func versions(ctx context.Context, l layout.Layout) (string, error) {
	var list []string
	for _, peer := range peers {
		module, err := run.Command(ctx, "go", "list", "-m", peer.module).Dir(l.Root).Output()
		if err != nil {
			return "", err
		}
		list = append(list, peer.contestant+" is "+module)
	}
	return strings.Join(list, ", ") + ".", nil
}
