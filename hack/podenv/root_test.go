package main

import (
	"io"
	"strings"
	"testing"
)

// Verbs that make and delete clusters of their own must not do that to the user's.
func TestEachVerbHasItsOwnDefaultName(t *testing.T) {
	for line, want := range map[string]string{
		"up": "podenv", "down": "podenv", "node list": "podenv", "compare": "compare", "conformance": "conformance", "gate walk": "gate",
		"conformance --name mine": "mine",
	} {
		t.Run(line, func(t *testing.T) {
			a := &app{out: io.Discard, errs: io.Discard}
			cmd, rest, err := newRootOf(a).Find(strings.Fields(line))
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Fatal(err)
			}
			if err := a.prepare(cmd); err != nil {
				t.Fatal(err)
			}
			if a.name != want {
				t.Errorf("the cluster is %q, want %q", a.name, want)
			}
		})
	}
}
