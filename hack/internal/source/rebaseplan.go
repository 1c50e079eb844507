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

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/series"
)

// planned is a patch that a rebase applies.
type planned struct {
	patchFile
	rebaseStep
}

func newPlanned(p patchFile) planned {
	return planned{p, rebaseStep{Title: p.header.Title, Name: p.name()}}
}

// plan merges from, the patches of the series called name, and to, the current patches of
// another series, into the future patches of the latter:
//
//   - for a patch of from that has not changed since the last carry, to's version is kept with
//     all adaptations; if to has none, someone dropped it on purpose;
//   - any other patch of from is carried;
//   - a patch that from never had stays after its predecessor.
func plan(name string, from, to []patchFile, earlier carried) []planned {
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
		own, exists := take(p.header.Title)
		last, wasCarried := earlier.of(p.header.Title)
		unchanged := wasCarried && last.Changes == changesHash(p)
		switch {
		case unchanged && exists:
			kept := newPlanned(own)
			if last.Message != messageHash(p) {
				kept.Message = p.header.Message()
			}
			result = append(result, kept)
		case !unchanged:
			carry := newPlanned(p)
			carry.Series = name
			if exists {
				carry.Before = own.name()
				carry.Adapted = wasCarried && changesHash(own) != last.Changes
			}
			result = append(result, carry)
		}
	}
	for _, p := range unused {
		if _, wasCarried := earlier.of(p.header.Title); wasCarried {
			continue // dropped from from
		}
		result = slices.Insert(result, insertIndex(result, to, p), newPlanned(p))
	}
	return result
}

// insertIndex is the index for p in result: after the nearest of its predecessors in to that result has.
func insertIndex(result []planned, to []patchFile, p patchFile) int {
	at := slices.IndexFunc(to, func(q patchFile) bool { return q.path == p.path })
	for _, predecessor := range slices.Backward(to[:at]) {
		i := slices.IndexFunc(result, func(q planned) bool { return q.header.Title == predecessor.header.Title })
		if i >= 0 {
			return i + 1
		}
	}
	return 0
}

// matchesPlan reports whether to already has exactly the planned patches.
func matchesPlan(plan []planned, to []patchFile) bool {
	return slices.EqualFunc(plan, to, func(p planned, q patchFile) bool {
		return p.Series == "" && p.Message == "" && p.path == q.path
	})
}

// changesHash is a hash of the lines that the patch adds and removes in existing files, which the
// user adapts to another release. It ignores context and line numbers, which depend on the
// release. For new files only the paths count: both series share the content.
func changesHash(p patchFile) string {
	parts := []string{"changes"}
	for _, f := range p.files {
		if p.adds(f.NewName) {
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
			data, _ := io.ReadAll(f.BinaryFragment.Data()) // in memory: cannot fail
			parts = append(parts, string(data))
		}
	}
	return digest.Of(parts...)[:16]
}

func messageHash(p patchFile) string { return digest.Of("message", p.header.Message())[:16] }

// carriedName is the name of the file in the folder of a series that records which patches of
// another series were carried to it.
const carriedName = "carried"

// carried describes the patches of another series at the time of the last carry.
type carried []carriedPatch

type carriedPatch struct{ Title, Changes, Message string }

func (c carried) of(title string) (carriedPatch, bool) {
	for _, p := range c {
		if p.Title == title {
			return p, true
		}
	}
	return carriedPatch{}, false
}

// carriedOf describes the patches of the series that a rebase carries.
func carriedOf(patches []patchFile) carried {
	var c carried
	for _, p := range patches {
		c = append(c, carriedPatch{Title: p.header.Title, Changes: changesHash(p), Message: messageHash(p)})
	}
	return c
}

// format returns the content of the file: a comment, the name of the other series, and a line
// for each of its patches.
func (c carried) format(from string) []byte {
	var b bytes.Buffer
	b.WriteString("# Written by `podenv rebase`: the patches of another series that are carried here,\n" +
		"# with hashes of what each changed and said. One that is still the same is not\n" +
		"# carried again.\n")
	fmt.Fprintf(&b, "from %s\n", from)
	for _, p := range c {
		fmt.Fprintf(&b, "%s %s %s\n", p.Changes, p.Message, p.Title)
	}
	return b.Bytes()
}

// readCarried reads what was carried to s: nothing if the series was written from scratch.
func readCarried(s series.Series) (carried, error) {
	path := filepath.Join(s.Dir, carriedName)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c carried
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		fields := strings.SplitN(line, " ", 3)
		switch {
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "from "):
		case len(fields) == 3:
			c = append(c, carriedPatch{Changes: fields[0], Message: fields[1], Title: fields[2]})
		default:
			return nil, fmt.Errorf("%s: cannot read the line %q: restore the file with git, or delete it to carry every patch again", path, line)
		}
	}
	return c, nil
}
