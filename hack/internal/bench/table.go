package bench

import (
	"strconv"

	"golang.org/x/perf/benchunit"
)

// Unit says how the numbers of a column are written for a person. In TSV and JSON
// they are plain numbers.
type Unit int

// The units of a Column.
const (
	Text    Unit = iota // no numbers
	Seconds             // scaled: 75.10µs
	Bytes               // scaled: 64.00KiB
	Speed               // of bytes, scaled: 2.459GB/s
	Number              // as they are
	Times               // a factor: 1.46x
)

// Column is one column of a Table. Its name is the heading for a person and, with
// the unit, the heading in TSV and the key in JSON.
type Column struct {
	Name string
	Unit Unit
}

// Table is what was measured of one thing. A cell is a string, a float64 in the base
// unit of its column, a bool, or nil where nothing was measured.
type Table struct {
	Name    string // what was measured; the first column in TSV
	Columns []Column
	Rows    [][]any
	// Notes are sentences below the table: where and how it was measured.
	Notes []string
}

// Add appends a row.
func (t *Table) Add(cells ...any) { t.Rows = append(t.Rows, cells) }

// text is a cell as a person reads it.
func (c Column) text(cell any) string {
	switch v := cell.(type) {
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case float64:
		return c.number(v)
	default:
		return "-"
	}
}

func (c Column) number(v float64) string {
	switch c.Unit {
	case Seconds:
		if v >= 1 {
			return strconv.FormatFloat(v, 'f', 2, 64) + "s"
		}
		return benchunit.Scale(v, benchunit.Decimal) + "s"
	case Bytes:
		return benchunit.Scale(v, benchunit.Binary) + "B"
	case Speed:
		return benchunit.Scale(v, benchunit.Decimal) + "B/s"
	case Times:
		return significant(v) + "x"
	default:
		return significant(v)
	}
}

// significant writes v with three digits, or all those before the point.
func significant(v float64) string {
	switch {
	case v == float64(int64(v)) || v >= 100 || v <= -100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10 || v <= -10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// raw is a cell as a script reads it; empty where nothing was measured.
func (c Column) raw(cell any) string {
	switch v := cell.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string, bool:
		return c.text(v)
	default:
		return ""
	}
}

// heading is the column's name in TSV and JSON.
func (c Column) heading() string {
	switch c.Unit {
	case Seconds:
		return c.Name + " (s)"
	case Bytes:
		return c.Name + " (B)"
	case Speed:
		return c.Name + " (B/s)"
	default:
		return c.Name
	}
}
