package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/series"
)

// planned is a patch that a rebase applies.
type planned struct {
	patchFile
	// carry is set for a patch of the other series; the rest are the series' own, as
	// they were.
	carry bool
	// message replaces that of an own patch, where that of the patch which it was
	// carried from has changed. Empty: it stays.
	message string
	// before is the name of the patch file that an earlier carry of the same patch gave.
	before string
	// adapted says that the earlier carry changes something else than the patch did then:
	// the user adapted it.
	adapted bool
}

// plan joins the patches that series from has with those that the series to has already
// into what to is to have:
//
//   - a patch of from that says the same as when it was carried last is to's own, with all
//     that was adapted then; where to has none, someone left it out on purpose;
//   - any other patch of from is carried;
//   - a patch that from never had stays behind the one that it follows.
func plan(from, to []patchFile, earlier carried) []planned {
	unused := slices.Clone(to)
	take := func(title string) (patchFile, bool) {
		at := slices.IndexFunc(unused, func(p patchFile) bool { return p.header.Title == title })
		if at < 0 {
			return patchFile{}, false
		}
		p := unused[at]
		unused = slices.Delete(unused, at, at+1)
		return p, true
	}
	var result []planned
	for _, p := range from {
		own, has := take(p.header.Title)
		last, wasCarried := earlier.of(p.header.Title)
		switch {
		case wasCarried && last.Changes == changesHash(p) && !has:
		case wasCarried && last.Changes == changesHash(p):
			kept := planned{patchFile: own}
			if last.Message != messageHash(p) {
				kept.message = p.header.Message()
			}
			result = append(result, kept)
		default:
			adapted := has && wasCarried && changesHash(own) != last.Changes
			result = append(result, planned{patchFile: p, carry: true, before: own.nameIfAny(), adapted: adapted})
		}
	}
	for _, p := range unused {
		if _, gone := earlier.of(p.header.Title); gone {
			continue // from has it no longer
		}
		result = slices.Insert(result, after(result, to, p), planned{patchFile: p})
	}
	return result
}

// after is where p goes in result: behind the nearest of its predecessors in to that is
// there.
func after(result []planned, to []patchFile, p patchFile) int {
	at := slices.IndexFunc(to, func(q patchFile) bool { return q.path == p.path })
	for _, predecessor := range slices.Backward(to[:at]) {
		i := slices.IndexFunc(result, func(q planned) bool { return q.header.Title == predecessor.header.Title })
		if i >= 0 {
			return i + 1
		}
	}
	return 0
}

// isDone reports whether the series to is as planned.
func isDone(plan []planned, to []patchFile) bool {
	return slices.EqualFunc(plan, to, func(p planned, q patchFile) bool {
		return !p.carry && p.message == "" && p.path == q.path
	})
}

// changesHash is a hash of the lines that the patch adds to and removes from existing files,
// which is what the user adapts to another release. What stands around them, and where, is the
// release's. Of its new files the names count: both series have the same ones.
func changesHash(p patchFile) string {
	parts := []string{"changes"}
	for _, f := range p.files {
		if p.brings(f.NewName) {
			parts = append(parts, "new", f.NewName)
			continue
		}
		parts = append(parts, f.OldName, f.NewName, fmt.Sprint(f.IsNew, f.IsDelete, f.NewMode))
		for _, fragment := range f.TextFragments {
			for _, line := range fragment.Lines {
				if line.Op != gitdiff.OpContext {
					parts = append(parts, line.String())
				}
			}
		}
		if f.BinaryFragment != nil {
			data, _ := io.ReadAll(f.BinaryFragment.Data()) // it is in memory
			parts = append(parts, string(data))
		}
	}
	return digest.Of(parts...)[:16]
}

func messageHash(p patchFile) string { return digest.Of("message", p.header.Message())[:16] }

func (p patchFile) nameIfAny() string {
	if p.path == "" {
		return ""
	}
	return p.name()
}

// carriedName is the file, beside the patches of a series, that says from which patches of
// another series they were carried.
const carriedName = "carried"

// carried is what the patches of another series were when they were carried last.
type carried struct {
	from    string // the other series; empty where none was carried from
	patches []carriedPatch
}

type carriedPatch struct{ Title, Changes, Message string }

func (c carried) of(title string) (carriedPatch, bool) {
	for _, p := range c.patches {
		if p.Title == title {
			return p, true
		}
	}
	return carriedPatch{}, false
}

// carriedFrom says what is carried by a rebase from the series with patches.
func carriedFrom(from series.Series, patches []patchFile) carried {
	c := carried{from: from.Name}
	for _, p := range patches {
		c.patches = append(c.patches, carriedPatch{Title: p.header.Title, Changes: changesHash(p), Message: messageHash(p)})
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
		fmt.Fprintf(&b, "%s %s %s\n", p.Changes, p.Message, p.Title)
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
			c.patches = append(c.patches, carriedPatch{Changes: fields[0], Message: fields[1], Title: fields[2]})
		default:
			return carried{}, fmt.Errorf("%s: cannot read the line %q: restore the file with git, or delete it to carry every patch again", path, line)
		}
	}
	return c, nil
}

// writeCarried writes what was carried to s, and reports whether that is news.
func writeCarried(s series.Series, c carried) (changed bool, err error) {
	path := filepath.Join(s.Dir, carriedName)
	if sameContent(path, c.format()) {
		return false, nil
	}
	return true, renameio.WriteFile(path, c.format(), 0o644)
}
