package series

import (
	"bytes"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"podenv.dev/hack/internal/layout"
)

func TestFixesAreFilesAndFoldersOfThem(t *testing.T) {
	l := repository(t, map[string]string{"f/0002-b.patch": "", "f/0001-a.patch": "", "f/README": "", "c.patch": "", "none/README": "",
		"n/0001-a.patch": "Subject: a\n\nNeeds nothing.\n", "n/0002-b.patch": "Subject: b\n\nNeeds: 0001\n", "n/0003-c.patch": "Subject: c\n"})
	at := func(path string) string { return filepath.Join(l.Root, path) }
	got, err := FindFixes([]string{at("c.patch"), at("f")})
	if want := []string{at("c.patch"), at("f/0001-a.patch"), at("f/0002-b.patch")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	got, err = FindFixes([]string{at("n/0003-c.patch"), at("n/0002-b.patch"), at("n/0001-a.patch")})
	if want := []string{at("n/0003-c.patch"), at("n/0001-a.patch"), at("n/0002-b.patch")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("with one that needs another: got %q, %v, want %q", got, err, want)
	}
	for path, want := range map[string]string{"none": "has no *.patch files", "missing": "no such file"} {
		if _, err := FindFixes([]string{at(path)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

// Each fix is one that a maintainer can take alone: it is small, applies to the release without the
// others, brings a test, and names specs of the suite, or says that there are none. One that says Needs
// applies after those before it. One that fixes a weakness says that it is to be reported privately, and
// compare.md has the class.
func TestEachFixOfThisRepositoryCanBeSent(t *testing.T) {
	l := layout.MustFind()
	folders, err := filepath.Glob(filepath.Join(l.Root, FixesFolder("v*")))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no fixes: %v", err)
	}
	texts := literals(t, filepath.Join(l.Root, "test/e2e/envfiles"))
	page, err := os.ReadFile(filepath.Join(l.Root, "docs/compare.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		s, err := Load(l, filepath.Base(folder))
		if err != nil {
			t.Fatal(err)
		}
		if s.Fixes, err = FindFixes([]string{folder}); err != nil {
			t.Fatal(err)
		}
		fixes := slices.Clone(s.Fixes)
		released := download(t, s.Module()+"@"+s.Release)
		for _, path := range fixes {
			t.Run(s.Name+"/"+filepath.Base(path), func(t *testing.T) {
				p, err := s.describe(path)
				if err != nil {
					t.Fatal(err)
				}
				if p.TestLines == 0 || p.Fate == "" || p.Trailer("Release-Note") == "" {
					t.Errorf("%d lines of tests, fate %q, release note %q", p.TestLines, p.Fate, p.Trailer("Release-Note"))
				}
				private := strings.Contains(p.Fate, "Private report first") && strings.HasPrefix(p.Body, "Report privately first")
				if class := p.Trailer("Weakness"); private != (class != "") {
					t.Errorf("weakness %q, fate %q: a fix of a weakness, and no other, is to be reported privately first", class, p.Fate)
				} else if private {
					for _, id := range strings.Split(class, ", ") {
						if !strings.Contains(string(page), "("+id+")") {
							t.Errorf("docs/compare.md does not describe %s", id)
						}
					}
				}
				with, err := FindFixes([]string{path})
				if err != nil {
					t.Fatal(err)
				}
				if n := applies(t, s, released, with); n > MaxFixLines {
					t.Errorf("it changes %d lines, more than %d: split it", n, MaxFixLines)
				}
				specs := 0
				for _, trailer := range p.Trailers {
					if spec, ok := strings.CutPrefix(trailer, "Fixes-Spec: "); ok {
						if specs++; spec != "none" && !joined(spec, texts) {
							t.Errorf("the suite has no spec %q", spec)
						}
					}
				}
				if specs == 0 && len(with) == 1 {
					t.Error("it names no spec that it fixes: say Fixes-Spec: none if only its unit test shows what it fixes")
				}
			})
		}
	}
}

func TestSpecsAreJoinedFromTexts(t *testing.T) {
	texts := []string{"row 5,", "row 5, and", "names the line, when", "a"}
	for spec, want := range map[string]bool{
		"row 5, and names the line, when a": true, "row 5, a": true,
		"row 5, and names the line, when b": false, "row 5": false, "": false,
	} {
		if joined(spec, texts) != want {
			t.Errorf("%q: want %v", spec, want)
		}
	}
}

// joined reports whether spec consists of texts with blanks between them, as Ginkgo joins them.
func joined(spec string, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		rest, ok := strings.CutPrefix(spec, text+" ")
		return text != "" && (spec == text || ok && joined(rest, texts))
	})
}

// literals are the strings in the Go files of a folder.
func literals(t *testing.T, folder string) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				texts = append(texts, text)
			}
			return true
		})
	}
	return texts
}

// download returns the folder of a version of a module.
func download(t *testing.T, version string) string {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", version).Output()
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &module); jsonErr != nil || module.Error != "" {
		t.Fatalf("%v, %v, %s", err, jsonErr, module.Error)
	}
	return module.Dir
}

// applies applies patches to the files of the release that they change, and returns how many lines
// the last one adds and removes.
func applies(t *testing.T, s Series, released string, patches []string) (changed int) {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet")
	for _, path := range patches {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files, _, err := gitdiff.Parse(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		changed = 0
		for _, f := range files {
			for _, fragment := range f.TextFragments {
				changed += int(fragment.LinesAdded + fragment.LinesDeleted)
			}
			from := filepath.Join(released, f.OldName)
			if staged, ok := strings.CutPrefix(f.OldName, "staging/src/k8s.io/"); ok { // a module of its own
				name, file, _ := strings.Cut(staged, "/")
				from = filepath.Join(download(t, "k8s.io/"+name+"@"+s.Staging()), file)
			}
			copyFile(t, from, filepath.Join(dir, f.OldName), f.IsNew)
			// git am --3way finds the release's file by its id in the patch.
			if released, _ := os.ReadFile(filepath.Join(dir, f.OldName)); len(patches) == 1 && !f.IsNew {
				if id := fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(released), released))); id != f.OldOIDPrefix {
					t.Errorf("%s is %s in the release and %s in the patch", f.OldName, id, f.OldOIDPrefix)
				}
			}
		}
	}
	git("add", "--all")
	git("commit", "--quiet", "--message=release")
	merge := "--3way"
	if len(patches) == 1 {
		merge = "--no-3way"
	}
	git(append([]string{"am", "--quiet", merge}, patches...)...)
	return changed
}

// copyFile copies a file of the release, unless it is new there.
func copyFile(t *testing.T, from, to string, isNew bool) {
	t.Helper()
	content, err := os.ReadFile(from)
	if isNew || errors.Is(err, os.ErrNotExist) {
		return // another fix adds it
	}
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, 0o644)); err != nil {
		t.Fatal(err)
	}
}
