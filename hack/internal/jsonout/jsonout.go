// Package jsonout writes the JSON of all verbs with --output json: indented, and without
// HTML escapes, since it does not go into web pages.
package jsonout

import (
	"encoding/json"
	"io"
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
