package node

import (
	"strings"
	"testing"

	"podenv.dev/hack/internal/jsonout"
)

func TestWriteStates(t *testing.T) {
	states := []State{
		{Node: "a", Status: "Ready", Component: "kubelet", Version: "v1.32.13", Gates: map[string]bool{"Two": false, "One": true}, LeftOut: []string{"EnvFiles"}, Changed: true},
		{Node: "b", Status: "Unknown", Component: "kubelet", Problem: "connection\n\trefused"},
	}
	var tsv, table, json strings.Builder
	for write, err := range map[string]error{
		"tsv": WriteTSV(&tsv, states), "table": WriteTable(&table, states), "json": jsonout.WriteList[State](&json, nil),
	} {
		if err != nil {
			t.Errorf("%s: %v", write, err)
		}
	}
	if want := "a\tReady\tkubelet\tv1.32.13\tOne=true,Two=false\tEnvFiles\tyes\nb\tUnknown\tkubelet\tconnection refused\t\t\tno\n"; tsv.String() != want {
		t.Errorf("TSV %q, want %q", tsv.String(), want)
	}
	const want = `NODE  STATUS   COMPONENT  VERSION   CHANGED  GATES
a     Ready    kubelet    v1.32.13  yes      One=true
                                             Two=false
                                             EnvFiles is unknown
b     Unknown  kubelet    ?         no       -

kubelet of b: connection refused
`
	if table.String() != want {
		t.Errorf("table\n%s\nwant\n%s", table.String(), want)
	}
	if json.String() != "[]\n" {
		t.Errorf("JSON of nothing: %q", json.String())
	}
}
