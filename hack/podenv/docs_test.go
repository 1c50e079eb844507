package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/shlex"
	"k8s.io/apimachinery/pkg/util/sets"

	"podenv.dev/hack/proof"
)

// readmeLimit is what a newcomer reads before the first command, in bytes.
const readmeLimit = 10 << 10

var (
	// docCommand is a command of ours, in a block of code or in backticks.
	docCommand = regexp.MustCompile("(?m)(?:^|`|\\(|- run: |\\$ )(?:_output/bin/)?(podenv|make) ([a-zA-Z][^`)\"\n]*)")
	docLink    = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^):]*))?\)`)
	// docHeading is a heading, and notInAnchor what its anchor leaves out.
	docHeading  = regexp.MustCompile(`(?m)^#+ (.*)`)
	notInAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)
	// barePodenv is a command in a block of code that does not run: podenv is not in PATH.
	docBlock   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	barePodenv = regexp.MustCompile(`(?m)(?:^ *|\$\()podenv .*`)
	// afterCd is a block of code that leaves the repository before it calls podenv by its path there.
	afterCd = regexp.MustCompile("(?m)^cd [^`]*\n_output/bin/")
	// afterCdHere is the same in the examples of --help, where podenv is in PATH.
	afterCdHere = regexp.MustCompile(`(?m)^\s*cd .*\n(?:.*\n)*?\s*(?:_output/bin/)?podenv.*`)
	makeTarget  = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	phony       = regexp.MustCompile(`(?m)^\.PHONY: .*`)
)

// TestTheDocsNameWhatExists holds README.md and docs/ to the command line, the Makefile
// and each other: every command parses, and every link leads to a file and a heading.
func TestTheDocsNameWhatExists(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, filepath.Join(root, "README.md"))
	makefile := read(t, filepath.Join(root, "Makefile"))
	var targets []string
	for _, m := range makeTarget.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
	}
	// A phony target without a rule is one that does nothing, successfully.
	if phony := strings.Fields(phony.FindString(makefile))[1:]; !sets.New(phony...).Equal(sets.New(targets...)) {
		t.Errorf("the Makefile's .PHONY has %q, its rules are %q", phony, targets)
	}
	commands := 0
	for _, page := range pages {
		text := read(t, page)
		for _, m := range docLink.FindAllStringSubmatch(text, -1) {
			linked := page
			if m[1] != "" {
				linked = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(linked); err != nil {
				t.Errorf("%s: %v", filepath.Base(page), err)
			} else if m[2] != "" && !slices.Contains(anchors(t, linked), m[2]) {
				t.Errorf("%s: %s has no heading #%s", filepath.Base(page), filepath.Base(linked), m[2])
			}
		}
		if m := afterCd.FindString(text); m != "" {
			t.Errorf("%s: _output/bin is not in that folder: %s", filepath.Base(page), m)
		}
		for _, block := range docBlock.FindAllString(text, -1) {
			if m := barePodenv.FindString(block); m != "" {
				t.Errorf("%s: write _output/bin/podenv in what is to be copied: %s", filepath.Base(page), m)
			}
		}
		for _, m := range docCommand.FindAllStringSubmatch(text, -1) {
			commands++
			words, err := shlex.Split(m[2]) // a comment ends the words
			if err != nil || len(words) == 0 {
				t.Errorf("%s: %s: %v", filepath.Base(page), m[0], err)
				continue
			}
			switch {
			case m[1] == "podenv":
				if err := parses(words); err != nil {
					t.Errorf("%s: podenv %s: %v", filepath.Base(page), m[2], err)
				}
			case !slices.Contains(targets, words[0]):
				t.Errorf("%s: the Makefile has no target %s", filepath.Base(page), words[0])
			}
		}
	}
	if commands < 30 {
		t.Errorf("only %d commands found in %d pages: does docCommand still match?", commands, len(pages))
	}
	if n := len(read(t, filepath.Join(root, "README.md"))); n > readmeLimit {
		t.Errorf("README.md has %d bytes, more than %d: move details to docs/", n, readmeLimit)
	}
}

// anchors are those of the headings of a page, as GitHub forms them.
func anchors(t testing.TB, page string) (all []string) {
	t.Helper()
	for _, m := range docHeading.FindAllStringSubmatch(read(t, page), -1) {
		all = append(all, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// TestTheDocsNameThePinnedKind: docs/ci.md is for who has no checkout, and so no go.mod.
func TestTheDocsNameThePinnedKind(t *testing.T) {
	root := filepath.Join("..", "..")
	pinned := regexp.MustCompile(`sigs\.k8s\.io/kind (v\S+)`).FindStringSubmatch(read(t, filepath.Join(root, "go.mod")))
	if named := "kind " + pinned[1] + ","; !strings.Contains(read(t, filepath.Join(root, "docs", "ci.md")), named) {
		t.Errorf("docs/ci.md does not name %q", named)
	}
}

// TestNoExampleLeavesTheRepository: podenv and patches/ are of the folder where the shell is.
func TestNoExampleLeavesTheRepository(t *testing.T) {
	examples := 0
	for _, cmd := range newRoot(&app{out: io.Discard, errs: io.Discard}).Commands() {
		if cmd.Example != "" {
			examples++
		}
		if m := afterCdHere.FindString(cmd.Example); m != "" {
			t.Errorf("podenv %s --help: the second line runs in the folder of the first:\n%s", cmd.Name(), m)
		}
	}
	if examples < 17 {
		t.Errorf("only %d verbs have an example", examples)
	}
}

// parses returns an error if podenv does not take the verb or the flags of the command line.
func parses(words []string) error {
	if i := slices.IndexFunc(words, func(w string) bool { return strings.Trim(w, ">|&;") == "" }); i >= 0 {
		words = words[:i] // what follows is the shell's
	}
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "\\" })
	if words[0] == "VERB" {
		return nil
	}
	cmd, rest, err := newRoot(&app{out: io.Discard, errs: io.Discard}).Find(words)
	if err != nil {
		return err
	}
	return cmd.ParseFlags(rest)
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheTableOfChecksIsComplete compares docs/testing.md with the checks of hack/proof: their groups,
// and what makes them run.
func TestTheTableOfChecksIsComplete(t *testing.T) {
	root := filepath.Join("..", "..")
	var want, got []string
	checks := read(t, filepath.Join(root, "hack", "proof", "checks_test.go"))
	withFull := regexp.MustCompile(`(?ms)^\tif \*full \{\n.*?^\t\}\n`).FindAllString(checks, -1)
	for _, m := range regexp.MustCompile(`l\.check\("([^"]+)", "([^"]+)"`).FindAllStringSubmatch(checks, -1) {
		row := m[1] + " | " + m[2]
		if !slices.Contains(proof.Groups, m[2]) {
			row += ", by name"
		}
		if strings.Contains(strings.Join(withFull, ""), m[0]) {
			row += ", with `--full`"
		}
		want = append(want, row)
	}
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+ \| [^|]+) \| [^|]+ \|$`).FindAllStringSubmatch(read(t, filepath.Join(root, "docs", "testing.md")), -1) {
		if m[1] != "check | group" {
			got = append(got, m[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the table of docs/testing.md has %q, hack/proof has %q", got, want)
	}
}

// TestTheDocsNameEachPackage compares the table of docs/harness.md with the folders.
func TestTheDocsNameEachPackage(t *testing.T) {
	root := filepath.Join("..", "..")
	var want, got []string
	for _, parent := range []string{"hack/internal", "test/e2e/internal"} {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(parent)))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			want = append(want, parent+"/"+entry.Name())
		}
	}
	page := read(t, filepath.Join(root, "docs", "harness.md"))
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\|").FindAllStringSubmatch(page, -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/harness.md lists %q, the folders are %q", got, want)
	}
}

// TestTheComparisonIsOfTheSuite holds docs/compare.md to the suite envfiles: a name in its command
// that no spec has any more makes the table stale. The numbers add up.
func TestTheComparisonIsOfTheSuite(t *testing.T) {
	root := filepath.Join("..", "..")
	page := read(t, filepath.Join(root, "docs", "compare.md"))
	focus := regexp.MustCompile(`--suite envfiles .*--focus '([^']+)'`).FindStringSubmatch(page)
	if focus == nil {
		t.Fatal("docs/compare.md has no command with --focus")
	}
	texts := textsOf(t, filepath.Join(root, "test", "e2e", "envfiles"))
	for name := range strings.SplitSeq(focus[1], "|") {
		if !slices.ContainsFunc(texts, regexp.MustCompile(strings.TrimSpace(name)).MatchString) {
			t.Errorf("the suite envfiles has no spec %q: run podenv compare again", name)
		}
	}
	var sums, all [4]int
	for _, m := range regexp.MustCompile(`(?m)^\| (.+)`+strings.Repeat(` \| (\d+)(?: of \d+)?`, len(all))+` \|$`).FindAllStringSubmatch(page, -1) {
		for i := range sums {
			n, err := strconv.Atoi(m[2+i])
			if err != nil {
				t.Fatal(err)
			}
			if m[1] == "all" {
				all[i] = n
			} else {
				sums[i] += n
			}
		}
	}
	if sums != all || all[0] == 0 {
		t.Errorf("the rows of docs/compare.md add up to %v, its last row has %v", sums, all)
	}
}

// textsOf are the strings in the Go files of a folder that the name of a spec may be made of.
func textsOf(t testing.TB, dir string) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", dir, err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && len(text) > 2 {
					texts = append(texts, strings.TrimSpace(text))
				}
			}
			return true
		})
	}
	return texts
}
