package expected

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAdd(t *testing.T) {
	when := time.Date(2026, 1, 1, 0, 0, 1, 500, time.UTC)
	const stamp = "2026-01-01T00:00:01.0000005Z"
	for name, test := range map[string]struct {
		text    string
		written []Writing
		runs    []Run
		want    string // in the error; empty: none
	}{
		"a generation": {
			text:    "ns-1_a-b_uid/writer/3.log:" + stamp + " stdout F 7\n",
			written: []Writing{{"a-b", 7, when}},
		},
		"the first generation": {
			text:    "ns-1_a-b_uid/setup/0.log:" + stamp + " stdout F 0\n",
			written: []Writing{{"a-b", 0, when}},
		},
		"an environment": {
			text: "ns-1_a-b_uid/regular/0.log:" + stamp + ` stdout F {"env":["A=x.log: y"]}` + "\n",
			runs: []Run{{"a-b", "regular", when, map[string]string{"A": "x.log: y"}}},
		},
		"a line that is there again": {
			text:    strings.Repeat("ns-1_a-b_uid/writer/3.log:"+stamp+" stdout F 7\n", 2),
			written: []Writing{{"a-b", 7, when}},
		},
		"nothing":                         {},
		"a writer that is ended":          {text: "ns_a_uid/writer/0.log:" + stamp + " stderr F Terminated\n"},
		"a container that complains":      {text: "ns_a_uid/regular/0.log:" + stamp + " stderr F address in use\n", want: "address in use"},
		"a writer that says other things": {text: "ns_a_uid/writer/0.log:" + stamp + " stdout F disk full\n", want: "announces no generation"},
		"what is no environment":          {text: "ns_a_uid/regular/0.log:" + stamp + " stdout F {\n", want: "envdump printed"},
		"a line without a time":           {text: "ns_a_uid/regular/0.log:now stdout F {}\n", want: "cannot parse"},
		"a file of no pod":                {text: "ns/regular/0.log:" + stamp + " stdout F {}\n", want: "no folder of a pod"},
		"an error of the shell":           {text: "grep: ns_*: No such file\n", want: "no line of a container's log"},
	} {
		t.Run(name, func(t *testing.T) {
			var l Log
			err := l.Add(test.text)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want one with %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(l.Written, test.written) || !reflect.DeepEqual(l.Runs, test.runs) {
				t.Errorf("got %v and %v, want %v and %v", l.Written, l.Runs, test.written, test.runs)
			}
		})
	}
}

func TestRanSince(t *testing.T) {
	l := Log{Runs: []Run{{Pod: "a", Container: Regular, Printed: at(5)}}}
	for name, test := range map[string]struct {
		pod, container string
		since          time.Time
		want           bool
	}{
		"it ran later":      {"a", Regular, at(4), true},
		"it ran before":     {"a", Regular, at(6), false},
		"another container": {"a", Sidecar, at(4), false},
		"another pod":       {"b", Regular, at(4), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := l.RanSince(test.pod, test.container, test.since); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
