package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
)

// repository is a module with one small suite, test/e2e/tiny, that imports a package
// with an embedded file.
func repository(t testing.TB) layout.Layout {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module tiny.example\n\ngo 1.21\n")
	write(t, filepath.Join(root, "go.sum"), "")
	write(t, filepath.Join(root, "data", "data.go"), "package data\n\nimport _ \"embed\"\n\n//go:embed text\nvar Text string\n")
	write(t, filepath.Join(root, "data", "text"), "one")
	write(t, filepath.Join(root, "other", "other.go"), "package other\n")
	write(t, filepath.Join(root, "test", "e2e", "tiny", "tiny_test.go"),
		"package tiny\n\nimport (\n\t\"testing\"\n\n\t\"tiny.example/data\"\n)\n\nfunc TestTiny(t *testing.T) { t.Log(data.Text) }\n")
	return layout.Layout{Root: root}
}

// fakeGo puts a go command first on PATH that does script for `go tool ginkgo`, and is
// the real one otherwise.
func fakeGo(t testing.TB, script string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go"), `#!/bin/sh
if [ "$1 $2" != "tool ginkgo" ]; then
	PATH=${PATH#*:} exec go "$@"
fi
for arg; do
	case $arg in --podenv.junit=*) junit=${arg#*=} ;; esac
done
mkdir -p "$(dirname "$junit")"
`+script+"\n")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestSourceKeyFollowsWhatTheSuiteIsMadeOf(t *testing.T) {
	for name, test := range map[string]struct {
		file, text string
		changes    bool
	}{
		"the suite's own file":               {"test/e2e/tiny/more_test.go", "package tiny\n", true},
		"a file embedded in what it imports": {"data/text", "two", true},
		"a package that it does not import":  {"other/more.go", "package other\n", false},
		"a test of what it imports":          {"data/data_test.go", "package data\n", false},
		"the versions of modules":            {"go.sum", "\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			l := repository(t)
			before := key(t, l)
			write(t, filepath.Join(l.Root, test.file), test.text)
			if after := key(t, l); (after != before) != test.changes {
				t.Errorf("changed: %v, want %v", after != before, test.changes)
			}
		})
	}
}

func TestBuildMakesABinaryOnceAndKeepsOnlyTheLast(t *testing.T) {
	l := repository(t)
	first := binary(t, l)
	made, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	if again := binary(t, l); again != first {
		t.Errorf("made %s, then %s, of the same sources", first, again)
	}
	if now, err := os.Stat(first); err != nil || !now.ModTime().Equal(made.ModTime()) {
		t.Errorf("the binary was made again: %v", err)
	}

	write(t, filepath.Join(l.Root, "data", "text"), "two")
	if second := binary(t, l); second == first {
		t.Error("the sources changed, the binary did not")
	}
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("the first binary is still there: %v", err)
	}
}

func TestBuildKeepsABinaryThatIsInUse(t *testing.T) {
	l := repository(t)
	first := binary(t, l)
	unlock, err := lockfile.TryShare(filepath.Join(filepath.Dir(first), inUse))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(l.Root, "data", "text"), "two")
	binary(t, l)
	if _, err := os.Stat(first); err != nil {
		t.Errorf("a run goes on in a folder that is gone: %v", err)
	}

	unlock()
	write(t, filepath.Join(l.Root, "data", "text"), "three")
	binary(t, l)
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("the first binary is still there: %v", err)
	}
}

func TestBuildOfABrokenSuiteNamesTheFileAndLeavesNothing(t *testing.T) {
	l := repository(t)
	write(t, filepath.Join(l.Root, "test", "e2e", "tiny", "tiny_test.go"), "package tiny\n\nvar x int = \"\"\n")
	_, err := build(t.Context(), l, "tiny", nil)
	if err == nil || !strings.Contains(err.Error(), "tiny_test.go:3") {
		t.Errorf("want an error that names the line, got %v", err)
	}
	if left, _ := os.ReadDir(l.Cache("e2e")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestUnknownSuite(t *testing.T) {
	for _, name := range []string{"nosuch", "../tiny", "tiny/.."} {
		if _, err := build(t.Context(), repository(t), name, nil); err == nil || !strings.Contains(err.Error(), "no suite") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func key(t testing.TB, l layout.Layout) string {
	t.Helper()
	key, err := sourceKey(t.Context(), l, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func binary(t testing.TB, l layout.Layout) string {
	t.Helper()
	binary, err := build(t.Context(), l, "tiny", nil)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
