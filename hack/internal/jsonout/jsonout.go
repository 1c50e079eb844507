// Package jsonout writes what verbs print with --output tsv and with --output json: the JSON is
// indented, and without HTML escapes, since it does not go into web pages.
package jsonout

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Write writes v as JSON.
func Write(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteList writes rows as an array: an empty one, not null, if there are none.
func WriteList[T any](w io.Writer, rows []T) error {
	if rows == nil {
		rows = []T{}
	}
	return Write(w, rows)
}

// WriteTSV writes a line for each of rows, with tabs between its fields.
func WriteTSV[T any](w io.Writer, rows []T, fields func(T) []any) error {
	for _, row := range rows {
		f := fields(row)
		if _, err := fmt.Fprintf(w, strings.Repeat("\t%v", len(f))[1:]+"\n", f...); err != nil {
			return err
		}
	}
	return nil
}
