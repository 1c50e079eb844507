package env

import "strings"

// withoutComment returns a line without its comment. A comment is a line that
// starts with #, or begins at the first # of a value. A # in a name is a part of
// it.
func withoutComment(line string) string {
	if strings.HasPrefix(strings.TrimSpace(line), "#") {
		return ""
	}
	name, value, found := strings.Cut(line, "=")
	if !found {
		return line
	}
	value, _, _ = strings.Cut(value, "#")
	return name + "=" + value
}
