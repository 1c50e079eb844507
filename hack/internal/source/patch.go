package source

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"os"
	pathpkg "path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/series"
)

// patchFile is one patch of a series.
type patchFile struct {
	path     string
	stored   []byte    // as in the series: the message names the new files, the diff lacks them
	newFiles []newFile // that it adds
	content  []byte    // the full patch for git am, with the new files in the diff
	hash     string    // of content
	files    []*gitdiff.File
	header   *gitdiff.PatchHeader
}

func patchHash(content []byte) string { return digest.Of("patch", string(content)) }

func (p patchFile) name() string { return filepath.Base(p.path) }

func (p patchFile) adds(path string) bool {
	return slices.ContainsFunc(p.newFiles, func(f newFile) bool { return f.path == path })
}

// readPatches reads the patches of s in the order of application, with their new files.
func readPatches(s series.Series) ([]patchFile, error) {
	paths := s.Patches()
	patches := make([]patchFile, len(paths))
	addedBy := map[string]string{} // new file to patch
	for i, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		p, err := newPatch(path, data, s)
		if err != nil {
			return nil, fmt.Errorf("%s of series %s cannot be read as a patch: %w; restore it with git, or rewrite it from the tree with `podenv patches`", filepath.Base(path), s.Name, err)
		}
		for _, f := range p.newFiles {
			if other := addedBy[f.path]; other != "" {
				return nil, fmt.Errorf("both %s and %s of series %s add the new file %s: delete the line from one of the messages", other, p.name(), s.Name, f.path)
			}
			addedBy[f.path] = p.name()
		}
		patches[i] = p
	}
	return patches, nil
}

// mboxFrom matches the first line of a mail of git format-patch.
var mboxFrom = regexp.MustCompile(`(?m)^From [0-9a-f]{40} Mon Sep 17 00:00:00 2001$`)

// newPatch parses a stored patch, and reads the new files that it names, which are those of s.
func newPatch(path string, stored []byte, s series.Series) (patchFile, error) {
	// `git am` counts mails: with one mail per file, the mail at which it stopped is the file.
	if n := len(mboxFrom.FindAll(stored, -1)); n != 1 {
		return patchFile{}, fmt.Errorf("it holds %d mails of git format-patch, not one", n)
	}
	p := patchFile{path: path, stored: stored}
	_, names := series.SplitMessage(stored)
	for _, name := range names {
		f, err := readWithHeader(s.NewFileFolder(name), name, s.Header)
		if err != nil {
			return patchFile{}, err
		}
		if f == nil {
			return patchFile{}, fmt.Errorf("it adds the new file %s, which neither %s/new nor %s/new has, nor this repository at that path: restore the file, or delete its line from the message", name, pathpkg.Dir(series.Folder(s.Name)), series.Folder(s.Name))
		}
		if err := f.checkImports(); err != nil {
			return patchFile{}, err
		}
		p.newFiles = append(p.newFiles, *f)
	}
	p.content = expand(stored, p.newFiles)
	files, preamble, err := gitdiff.Parse(bytes.NewReader(p.content))
	if err != nil {
		return patchFile{}, err
	}
	if p.header, err = gitdiff.ParsePatchHeader(preamble); err != nil {
		return patchFile{}, err
	}
	if len(files) == 0 {
		return patchFile{}, fmt.Errorf("it changes no file")
	}
	p.files, p.hash = files, patchHash(p.content)
	return p, nil
}

// expand turns a stored patch into a full one: it adds files to the diff, and removes the lines
// that name them from the message.
func expand(stored []byte, files []newFile) []byte {
	if len(files) == 0 {
		return stored
	}
	rest, _ := series.SplitMessage(stored)
	head, sections := cutSections(rest)
	for _, f := range files {
		sections = append(sections, section{f.path, f.section()})
	}
	slices.SortStableFunc(sections, func(a, b section) int { return strings.Compare(a.path, b.path) })
	return joinSections(head, sections)
}

// split is the inverse of expand: it removes the files for which drop holds from the diff of a
// full patch, and names those of adds in its message.
func split(full []byte, drop func(path string) bool, adds []string) (stored []byte, empty bool) {
	head, sections := cutSections(full)
	sections = slices.DeleteFunc(sections, func(s section) bool { return drop(s.path) })
	stored = series.JoinMessage(joinSections(head, sections), adds)
	return stored, len(sections)+len(adds) == 0
}

// section is the part of a patch for one file.
type section struct {
	path string
	text []byte
}

const diffLine = "diff --git "

// cutSections splits a patch at the lines that start with diffLine. These only start files: the
// lines of a hunk start with a space or a sign, and checkMessage refuses messages with such a line.
func cutSections(patch []byte) (head []byte, sections []section) {
	for line := range bytes.Lines(patch) {
		if bytes.HasPrefix(line, []byte(diffLine)) {
			sections = append(sections, section{path: pathOf(line)})
		}
		if len(sections) == 0 {
			head = append(head, line...)
		} else {
			last := &sections[len(sections)-1]
			last.text = append(last.text, line...)
		}
	}
	return head, sections
}

// pathOf reads the path from the first line of a section, which contains it twice.
func pathOf(line []byte) string {
	names := strings.TrimPrefix(strings.TrimRight(string(line), "\r\n"), diffLine)
	if strings.HasPrefix(names, `"`) {
		return names // quoted, so it is not a new file
	}
	return names[(len(names)+1)/2+len("b/"):]
}

func joinSections(head []byte, sections []section) []byte {
	patch := slices.Clone(head)
	for _, s := range sections {
		patch = append(patch, s.text...)
	}
	return patch
}

// section formats the addition of the file as git format-patch does.
func (f newFile) section() []byte {
	var b bytes.Buffer
	blob := sha1.New()
	fmt.Fprintf(blob, "blob %d\x00%s", len(f.content), f.content)
	fmt.Fprintf(&b, "%sa/%[2]s b/%[2]s\nnew file mode %[3]s\nindex %040[4]d..%[5]x\n", diffLine, f.path, f.mode, 0, blob.Sum(nil))
	if len(f.content) == 0 {
		return b.Bytes()
	}
	lines := slices.Collect(bytes.Lines(f.content))
	count := ""
	if len(lines) != 1 {
		count = "," + strconv.Itoa(len(lines))
	}
	fmt.Fprintf(&b, "--- /dev/null\n+++ b/%s\n@@ -0,0 +1%s @@\n", f.path, count)
	for _, line := range lines {
		b.WriteByte('+')
		b.Write(line)
	}
	if !bytes.HasSuffix(f.content, []byte("\n")) {
		b.WriteString("\n\\ No newline at end of file\n")
	}
	return b.Bytes()
}

// formatFlags make a patch file depend only on the content of its commit, so that it is the
// same on every machine and does not change without reason:
//   - no commit ids and git versions: --zero-commit, --no-signature;
//   - no numbering in subjects, and no statistics, whose numbers and column widths
//     change with every edit: --no-numbered, --no-stat;
//   - --full-index: abbreviated blob ids get longer as a repository grows, and
//     `git am --3way` looks up full ones;
//   - explicit values of all diff options, because defaults may change between git versions;
//   - --no-renames: the patch can be read without the old file.
var formatFlags = []string{
	"format-patch", "--zero-commit", "--no-signature", "--no-numbered", "--no-stat",
	"--full-index", "--binary", "--no-renames", "--unified=3", "--inter-hunk-context=0",
	"--diff-algorithm=myers", "--indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/",
	"--no-ext-diff", "--no-textconv", "--no-color", "--no-attach", "--no-thread",
	"--no-cover-letter", "--no-notes", "--no-base", "--no-to", "--no-cc",
	"--subject-prefix=PATCH", "--suffix=.patch", "--filename-max-length=64", "--quiet",
}

// formatPatch returns commit as patch number n, without the paths in exclude, and the name of
// the patch file. Both are empty if the commit changes only paths in exclude.
func (r repo) formatPatch(ctx context.Context, commit string, n int, exclude []string) (name string, patch []byte, err error) {
	dir, err := os.MkdirTemp("", "podenv-patch-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(dir)
	args := append(slices.Clone(formatFlags), "--output-directory="+dir, "--start-number="+strconv.Itoa(n),
		commit+"^.."+commit, "--", ":(top)")
	for _, p := range exclude {
		args = append(args, ":(top,exclude,literal)"+p)
	}
	if err := r.Run(ctx, args...); err != nil {
		return "", nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil || len(files) == 0 {
		return "", nil, err
	}
	patch, err = os.ReadFile(files[0])
	return filepath.Base(files[0]), patch, err
}
