package bench

import (
	"strings"
	"testing"
)

func TestReadersAreComparedWithOurs(t *testing.T) {
	table, err := readersTable(measured(t, twoRuns))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteTable(&b, table); err != nil {
		t.Fatal(err)
	}
	const want = `CASE          CONTESTANT  TIME/OP  TIMES OURS  MEMORY/OP  ALLOCS/OP  SPEED
read 2 keys   envfile     2.000µs  1x          158.9KiB   15         -
              kubernetes  10.00ms  5000x       65.19MiB   1006000    -
parse 2 keys  envfile     500.0ns  1x          64.41KiB   7          2.459GB/s

`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestABenchmarkWithoutContestantOrWithoutOursIsAnError(t *testing.T) {
	for name, output := range map[string]string{
		"no contestant": "BenchmarkRead/2_keys-2 1 10 ns/op\n",
		"no ours":       "BenchmarkRead/2_keys/by=kubernetes-2 1 10 ns/op\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readersTable(measured(t, output)); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestTheKubeletsCostIsOverLiteralsAndOneReading(t *testing.T) {
	report, err := kubeletReport(measured(t, `BenchmarkMakeEnvironmentVariables/literals-2 1 100 ns/op 10 B/op 1 allocs/op
BenchmarkMakeEnvironmentVariables/fileKeyRefs-2 1 280 ns/op 20 B/op 2 allocs/op
BenchmarkMakeEnvironmentVariables/read-2 1 100 ns/op 30 B/op 3 allocs/op
`), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := report.Relations[0]; got.Reached < 1.399 || got.Reached > 1.401 || !got.Met() {
		t.Errorf("got %+v, want 1.4, met", got)
	}
	if rows := len(report.Table.Rows); rows != 3 {
		t.Errorf("%d rows, want 3", rows)
	}
}

func TestRelationsAreMetAtTheirBound(t *testing.T) {
	for name, test := range map[string]struct {
		relation Relation
		met      bool
	}{
		"at least, above":    {Relation{AtLeast: true, Asked: 3, Reached: 4}, true},
		"at least, at it":    {Relation{AtLeast: true, Asked: 3, Reached: 3}, true},
		"at least, below":    {Relation{AtLeast: true, Asked: 3, Reached: 2.9}, false},
		"at most, below":     {Relation{Asked: 1.5, Reached: 1}, true},
		"at most, at it":     {Relation{Asked: 1.5, Reached: 1.5}, true},
		"at most, just over": {Relation{Asked: 1.5, Reached: 1.51}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.relation.Met(); got != test.met {
				t.Errorf("met: %t, want %t", got, test.met)
			}
		})
	}
}
