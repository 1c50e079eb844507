package build

import (
	"context"
	"errors"
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

// shownLines is how many of the compiler's lines the error of a tree that does not compile has.
const shownLines = 20

// position matches the start of a compiler message about a line of a file.
var position = regexp.MustCompile(`^(\S+\.(?:go|s)):\d+(?::\d+)?: `)

// compileError returns the error in the go command's messages, or nil if they name no line of a
// file of the tree t. It says which patches, commits and edits changed the files since the release.
func compileError(ctx context.Context, t *source.Tree, messages []string) error {
	var lines, files []string
	for _, line := range messages {
		found := position.FindStringSubmatch(line)
		if found != nil && !slices.Contains(files, found[1]) {
			files = append(files, found[1])
		}
		if found != nil || strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "\t") {
			lines = append(lines, strings.ReplaceAll(line, "\t", "    "))
		}
	}
	if len(files) == 0 {
		return nil
	}
	text := []string{"the tree does not compile:"}
	text = append(text, lines[:min(len(lines), shownLines)]...)
	if more := len(lines) - shownLines; more > 0 {
		text = append(text, fmt.Sprintf("and %d lines more", more))
	}
	subjects := patchSubjects(t)
	for _, file := range files[:min(len(files), 5)] {
		if changes := touchedBy(ctx, t, file, subjects); changes != "" {
			text = append(text, file+" was touched by "+changes)
		}
	}
	text = append(text, fmt.Sprintf("fix it in %s and run the same command again", t.Dir))
	return errors.New(strings.Join(text, "\n  "))
}

// patchSubjects maps the first line of each patch's message to the patch's file name.
func patchSubjects(t *source.Tree) map[string]string {
	subjects := map[string]string{}
	if t.Stock {
		return subjects
	}
	for _, patch := range t.Series.Patches() {
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
