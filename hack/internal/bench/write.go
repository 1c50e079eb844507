package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"podenv.dev/hack/internal/jsonout"
)

// WriteTable writes t for a person: columns, numbers with their units, and the notes
// below. A cell of the first column that repeats the one above it is left empty.
func WriteTable(w io.Writer, t Table) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var headings []string
	for _, c := range t.Columns {
		headings = append(headings, strings.ToUpper(c.Name))
	}
	fmt.Fprintln(table, strings.Join(headings, "\t"))
	above := ""
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = t.Columns[i].text(cell)
		}
		first := cells[0]
		if first == above {
			cells[0] = ""
		}
		above = first
		fmt.Fprintln(table, strings.TrimRight(strings.Join(cells, "\t"), " "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, note := range t.Notes {
		fmt.Fprintf(w, "  %s\n", note)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// WriteTSV writes t for a script: first a line of headings, and on every line first
// t's name. Numbers have no unit; what was not measured is empty.
func WriteTSV(w io.Writer, t Table) error {
	lines := make([][]string, 1, len(t.Rows)+1)
	for _, c := range t.Columns {
		lines[0] = append(lines[0], c.heading())
	}
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = t.Columns[i].raw(cell)
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(w, "%s\t%s\n", t.Name, strings.Join(line, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes tables as one array; each row is an object by the columns'
// headings, without what was not measured.
func WriteJSON(w io.Writer, tables []Table) error {
	type object struct {
		Name  string           `json:"name"`
		Rows  []map[string]any `json:"rows"`
		Notes []string         `json:"notes,omitempty"`
	}
	objects := []object{}
	for _, t := range tables {
		o := object{Name: t.Name, Rows: []map[string]any{}, Notes: t.Notes}
		for _, row := range t.Rows {
			fields := map[string]any{}
			for i, cell := range row {
				if cell != nil {
					fields[t.Columns[i].heading()] = cell
				}
			}
			o.Rows = append(o.Rows, fields)
		}
		objects = append(objects, o)
	}
	return jsonout.Write(w, objects)
}
