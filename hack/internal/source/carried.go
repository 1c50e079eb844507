package source

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/series"
)

// carriedName is the file, beside the patches of a series, that says from which patches of
// another series they were carried.
const carriedName = "carried"

// carried is what the patches of another series were when they were carried last.
type carried struct {
	from    string // the other series; empty where none was carried from
	patches []carriedPatch
}

type carriedPatch struct{ title, changes, message string }

func (c carried) of(title string) (carriedPatch, bool) {
	for _, p := range c.patches {
		if p.title == title {
			return p, true
		}
	}
	return carriedPatch{}, false
}

// carriedFrom says what is carried by a rebase from the series with patches.
func carriedFrom(from series.Series, patches []patchFile) carried {
	c := carried{from: from.Name}
	for _, p := range patches {
		c.patches = append(c.patches, carriedPatch{title: p.header.Title, changes: changesHash(p), message: messageHash(p)})
	}
	return c
}

// format returns the file's content: after the comment, the other series, and a line for
// each of its patches.
func (c carried) format() []byte {
	var b bytes.Buffer
	b.WriteString("# Written by `podenv rebase`: the patches of another series that are carried here,\n" +
		"# with hashes of what each changed and said. One that is still the same is not\n" +
		"# carried again.\n")
	fmt.Fprintf(&b, "from %s\n", c.from)
	for _, p := range c.patches {
		fmt.Fprintf(&b, "%s %s %s\n", p.changes, p.message, p.title)
	}
	return b.Bytes()
}

// readCarried reads what was carried to s; that is nothing for a series that was written
// from scratch.
func readCarried(s series.Series) (carried, error) {
	path := filepath.Join(s.Dir, carriedName)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return carried{}, nil
	}
	if err != nil {
		return carried{}, err
	}
	var c carried
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		fields := strings.SplitN(line, " ", 3)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case len(fields) == 2 && fields[0] == "from":
			c.from = fields[1]
		case len(fields) == 3:
			c.patches = append(c.patches, carriedPatch{changes: fields[0], message: fields[1], title: fields[2]})
		default:
			return carried{}, fmt.Errorf("%s: cannot read the line %q: restore the file with git, or delete it to carry every patch anew", path, line)
		}
	}
	return c, nil
}

// writeCarried writes what was carried to s, and tells whether that is news.
func writeCarried(s series.Series, c carried) (changed bool, err error) {
	path := filepath.Join(s.Dir, carriedName)
	if sameContent(path, c.format()) {
		return false, nil
	}
	return true, renameio.WriteFile(path, c.format(), 0o644)
}
