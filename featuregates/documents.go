package featuregates

import "fmt"

// Document is a document that the features implement, with its statements. A spec shows a statement if
// it has its label, which is NAME:ROW.
type Document struct {
	Name, Title string
	Rows        [][2]string // row and text
}

// Documents are the documents of this branch whose statements have labels.
var Documents = []Document{
	{"KEP-3721", "Support for env files, failure and fallback strategy", [][2]string{
		{"1", "The volume does not exist: pod creation fails with an error."},
		{"2", "The volume is not an emptyDir: pod creation fails with an error."},
		{"3", "The file or the key does not exist: the container fails to start, and an event has an error message."},
		{"4", "The file or the key does not exist, and optional is true: the container starts, and the variable is not set."},
		{"5", "The file cannot be parsed: the container fails to start, and an event has an error message."},
		{"6", "The file has invalid names of variables: the container fails to start, and an event has an error message."},
		{"7", "The container's UID may not read the file: the container fails to start, and an event has an error message."},
	}},
	{"KEP-4369", "Relaxed environment variable names", [][2]string{
		{"create on", "Gate on, a new object: every printable ASCII character but = is accepted."},
		{"create off", "Gate off, a new object: strict validation."},
		{"update on", "Gate on, an update: every printable ASCII character but = is accepted."},
		{"update off strict", "Gate off, the old object passes strict validation: strict validation of the update."},
		{"update off relaxed", "Gate off, the old object has special names: relaxed validation of the update."},
		{"refused", "No name is empty or has =, a character that is not printable, or one outside of ASCII."},
		{"container", "The container sees variables with special names."},
		{"config map", "Keys of a ConfigMap outside of C_IDENTIFIER become variables by envFrom."},
		{"secret", "Keys of a Secret outside of C_IDENTIFIER become variables by envFrom."},
		{"expansion", "Environment variables with special names can be expanded."},
		{"rollback", "Gate off: running workloads are not affected, and new ones with special names cannot be created."},
		{"again", "Gate on again: the feature works as before."},
	}},
}

// Row returns the label of a row. It panics if there is no such row, so that no suite with a wrong
// label starts.
func Row(document, row string) string {
	for _, d := range Documents {
		for _, r := range d.Rows {
			if d.Name == document && r[0] == row {
				return document + ":" + row
			}
		}
	}
	panic(fmt.Sprintf("featuregates.Documents has no row %q of %q", row, document))
}
