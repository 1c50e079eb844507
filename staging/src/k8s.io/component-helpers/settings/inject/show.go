package inject

import (
	"strconv"
	"strings"
	"unicode"
)

const maxShown = 256

// show makes a name or a path fit to be printed.
func show(name string) string {
	if len(name) > maxShown {
		name = name[:maxShown] + "..."
	}
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) {
		return strconv.Quote(name)
	}
	return name
}
