// Package jsonout writes rows as verbs print them, in columns, as TSV and as JSON, and JSON files. The JSON is
// indented, and without HTML escapes, since it does not go into web pages.
package jsonout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/google/renameio/v2"
)

// Write writes v as JSON.
func Write(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Save writes v as JSON to a file, all at once, and makes its folder.
func Save(file string, v any) error {
	var data bytes.Buffer
	if err := errors.Join(Write(&data, v), os.MkdirAll(filepath.Dir(file), 0o755)); err != nil {
		return err
	}
	return renameio.WriteFile(file, data.Bytes(), 0o644)
}

// WriteList writes rows as an array: an empty one, not null, if there are none.
func WriteList[T any](w io.Writer, rows []T) error {
	if rows == nil {
		rows = []T{}
	}
	return Write(w, rows)
}

// WriteTable writes a heading, with tabs between its fields, and rows below it in columns.
func WriteTable[T any](w io.Writer, heading string, rows []T, fields func(T) []any) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, heading)
	return errors.Join(WriteTSV(t, rows, fields), t.Flush())
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
