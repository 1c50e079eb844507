package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/source"
)

// shownLines is how many of the compiler's lines a CompileError keeps.
const shownLines = 20

// position matches the start of a compiler message about a line of a file.
var position = regexp.MustCompile(`^(\S+\.(?:go|s)):\d+(?::\d+)?: `)

// CompileError reports that a tree does not compile.
type CompileError struct {
	Dir   string   // the tree
	Lines []string // the compiler's first lines, packages included
	More  int      // how many lines were left out
	// Touched says, for each file in Lines that was changed since the release, which patches,
	// commits and edits changed it.
	Touched []string
}

func (e *CompileError) Error() string {
	var b strings.Builder
	b.WriteString("the tree does not compile:")
	for _, line := range e.Lines {
		b.WriteString("\n  " + line)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n  and %d lines more", e.More)
	}
	for _, touched := range e.Touched {
		b.WriteString("\n  " + touched)
	}
	fmt.Fprintf(&b, "\n  fix it in %s and run the same command again", e.Dir)
	return b.String()
}

// newCompileError returns the error in the go command's messages, or nil if they name no line
// of a file of the tree t.
func newCompileError(ctx context.Context, t *source.Tree, messages []string) *CompileError {
	e := &CompileError{Dir: t.Dir}
	var files []string
	lines := 0
	for _, line := range messages {
		found := position.FindStringSubmatch(line)
		if found != nil && !slices.Contains(files, found[1]) {
			files = append(files, found[1])
		}
		if found == nil && !strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "\t") {
			continue
		}
		if lines++; lines <= shownLines {
			e.Lines = append(e.Lines, strings.ReplaceAll(line, "\t", "    "))
		}
	}
	if len(files) == 0 {
		return nil
	}
	e.More = lines - len(e.Lines)
	subjects := patchSubjects(t)
	for _, file := range files[:min(len(files), 5)] {
		if changes := touchedBy(ctx, t, file, subjects); changes != "" {
			e.Touched = append(e.Touched, file+" was touched by "+changes)
		}
	}
	return e
}

// patchSubjects maps the first line of each patch's message to the patch's file name.
func patchSubjects(t *source.Tree) map[string]string {
	subjects := map[string]string{}
	if t.Stock {
		return subjects
	}
	patches, err := t.Series.Patches()
	if err != nil {
		return subjects
	}
	for _, patch := range patches {
		data, err := os.ReadFile(patch)
		if err != nil {
			continue
		}
		preamble, _, _ := strings.Cut(string(data), "\n---\n")
		if header, err := gitdiff.ParsePatchHeader(preamble + "\n"); err == nil {
			subjects[header.Title] = filepath.Base(patch)
		}
	}
	return subjects
}

// touchedBy lists the patches, other commits and edits that changed file since the release.
// It is empty if there are none, or if git fails.
func touchedBy(ctx context.Context, t *source.Tree, file string, subjects map[string]string) string {
	var changes []string
	repo := gitrepo.Repo{Dir: t.Dir}
	if dirty, err := repo.Quiet(ctx, "status", "--porcelain", "--", file); err == nil && dirty != "" {
		changes = append(changes, "your uncommitted edit")
	}
	// The release is the first commit, and the only one without a parent.
	log, err := repo.Lines(ctx, "log", "--min-parents=1", "--format=%h %s", "--", file)
	if err != nil {
		return strings.Join(changes, " and ")
	}
	for _, line := range log {
		id, subject, _ := strings.Cut(line, " ")
		if patch, known := subjects[subject]; known {
			changes = append(changes, "patch "+patch)
		} else {
			changes = append(changes, fmt.Sprintf("commit %s (%s)", id, subject))
		}
	}
	return strings.Join(changes, " and ")
}
