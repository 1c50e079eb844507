package cluster

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"podenv.dev/hack/internal/jsonout"
)

// WriteTable writes states for a person, with a heading.
func WriteTable(w io.Writer, states []NodeState) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tSTATUS\tCOMPONENT\tVERSION\tGATES\tLEFT OUT\tCHANGED")
	for _, s := range states {
		fmt.Fprintln(t, strings.Join(s.columns("-"), "\t"))
	}
	return t.Flush()
}

// WriteTSV writes a line for each state, without a heading: node, status, component,
// version, gates, gates left out, changed.
func WriteTSV(w io.Writer, states []NodeState) error {
	for _, s := range states {
		if _, err := fmt.Fprintln(w, strings.Join(s.columns(""), "\t")); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes the states as an array.
func WriteJSON(w io.Writer, states []NodeState) error {
	return jsonout.WriteList(w, states)
}

// columns are those of a table; nothing stands for an empty one.
func (s NodeState) columns(nothing string) []string {
	changed := "no"
	if s.Changed {
		changed = "yes"
	}
	version := s.Version
	if s.Problem != "" {
		version = strings.Join(strings.Fields(s.Problem), " ")
	}
	columns := []string{s.Node, s.Status, s.Component, version, gateFlag(s.Gates), strings.Join(s.LeftOut, ","), changed}
	for i, c := range columns {
		if c == "" {
			columns[i] = nothing
		}
	}
	return columns
}
