package bench

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var sample = Table{
	Name:    "cluster",
	Columns: []Column{{Name: "variables from"}, {Name: "start p50", Unit: Seconds}, {Name: "requests", Unit: Number}, {Name: "memory", Unit: Bytes}, {Name: "met"}},
	Rows: [][]any{
		{"literal values", 1.5, 12.0, 2048.0, true},
		{"literal values", 0.0125, 12.345, nil, false},
	},
	Notes: []string{"50 pods."},
}

func TestATableIsForPeople(t *testing.T) {
	var b strings.Builder
	if err := WriteTable(&b, sample); err != nil {
		t.Fatal(err)
	}
	const want = `VARIABLES FROM  START P50  REQUESTS  MEMORY    MET
literal values  1.50s      12        2.000KiB  yes
                12.50ms    12.3      -         no
  50 pods.

`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTSVHasPlainNumbersInBaseUnits(t *testing.T) {
	var b strings.Builder
	if err := WriteTSV(&b, sample); err != nil {
		t.Fatal(err)
	}
	const want = "cluster\tvariables from\tstart p50 (s)\trequests\tmemory (B)\tmet\n" +
		"cluster\tliteral values\t1.5\t12\t2048\tyes\n" +
		"cluster\tliteral values\t0.0125\t12.345\t\tno\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestJSONIsOneDocument(t *testing.T) {
	var b strings.Builder
	if err := WriteJSON(&b, []Table{sample, {Name: "empty"}}); err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Name  string
		Rows  []map[string]any
		Notes []string
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Name != "cluster" || got[1].Rows == nil {
		t.Fatalf("got %+v", got)
	}
	want := map[string]any{"variables from": "literal values", "start p50 (s)": 0.0125, "requests": 12.345, "met": false}
	if !reflect.DeepEqual(got[0].Rows[1], want) {
		t.Errorf("got %v, want %v", got[0].Rows[1], want)
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 1.456: "1.46", 12.34: "12.3", 499.6: "500", 1903.2: "1903", 0.08: "0.08"} {
		if got := significant(v); got != want {
			t.Errorf("%g: got %s, want %s", v, got, want)
		}
	}
}
