// Package jsonout writes JSON for scripts, as every verb with --output json does:
// indented, and with <, > and & as they are, since nobody puts it into a web page.
package jsonout

import (
	"encoding/json"
	"io"
)

// Write writes v.
func Write(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteList writes rows as an array, an empty one where there are none.
func WriteList[T any](w io.Writer, rows []T) error {
	if rows == nil {
		rows = []T{}
	}
	return Write(w, rows)
}
