package bench

import (
	"fmt"
	"strings"
	"testing"
)

const expansions = `cpu: Some Processor
BenchmarkExpand/whole_string/by=expansion-2   100  40 ns/op   0 B/op  0 allocs/op
BenchmarkExpand/whole_string/by=kubernetes-2  100  80 ns/op  64 B/op  1 allocs/op
BenchmarkExpand/newline/by=expansion-2        100  10 ns/op   0 B/op  0 allocs/op
BenchmarkExpand/newline/by=kubernetes-2       100   9 ns/op   0 B/op  0 allocs/op
BenchmarkKeep/a_flag/by=expansion-2           100   5 ns/op   0 B/op  0 allocs/op
BenchmarkKeep/a_flag/by=kubernetes-2          100   4 ns/op   0 B/op  0 allocs/op
`

func TestADuelHasARowForEachCase(t *testing.T) {
	table, err := expansionDuel.table("expansion", measured(t, expansions))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteTable(&b, table); err != nil {
		t.Fatal(err)
	}
	const want = `CASE                 EXPANSION  KUBERNETES  TIMES OURS  EXPANSION ALLOCS/OP  KUBERNETES ALLOCS/OP
expand whole string  40.00ns    80.00ns     2x          0                    1
expand newline       10.00ns    9.000ns     0.90x       0                    0
keep a flag          5.000ns    4.000ns     0.80x       0                    0

`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestACaseThatOneOfTwoLacksIsAnError(t *testing.T) {
	m := measured(t, "BenchmarkStrict/4_bytes/by=envvarname-2 1 10 ns/op\n")
	if _, err := namesDuel.table("names", m); err == nil || !strings.Contains(err.Error(), "Strict/4_bytes/by=kubernetes") {
		t.Errorf("got %v", err)
	}
	for name, duel := range map[string]duel{"names": namesDuel, "expansion": expansionDuel} {
		if _, err := duel.asks(m); err == nil {
			t.Errorf("%s: relations of nothing are no error", name)
		}
	}
}

// Not the worst of all: text without references is another relation.
func TestTheWorstOfUpstreamsCasesCounts(t *testing.T) {
	worst, err := worstCase(measured(t, expansions))
	if err != nil {
		t.Fatal(err)
	}
	if want := "expand newline: kubernetes / expansion, the worst of 2"; worst.What != want {
		t.Errorf("got %q, want %q", worst.What, want)
	}
	if got := fmt.Sprintf("%.2f %t", worst.Reached, worst.Met()); got != "0.90 false" {
		t.Errorf("got %s, want 0.90 false", got)
	}
}
