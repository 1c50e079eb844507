package envfile

import (
	"path"
	"strings"
)

// CleanPath returns the shortest spelling of a path in a volume, so that two
// spellings of one file can be compared: "./a.env" and "a.env". It keeps what
// decides whether a file is read: steps back, and an end that only a directory
// can have.
func CleanPath(p string) string {
	_, name := path.Split(p)
	if name == "" || name == "." || hasStepBack(p) {
		return p
	}
	return path.Clean(p)
}

func hasStepBack(p string) bool {
	for more := true; more; {
		var element string
		if element, p, more = strings.Cut(p, "/"); element == ".." {
			return true
		}
	}
	return false
}
