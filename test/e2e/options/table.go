package options

// TableEntry is the name of a report entry whose value is a Table.
const TableEntry = "table"

// Table is a table that a suite adds to its report, for podenv, which shows it.
type Table struct {
	Title string
	Head  []string
	Rows  [][]Cell // as long as Head
}

// Cell is a cell of a table.
type Cell struct {
	Text  string
	State string // "passed" or "failed": the cell has the color of it
}
