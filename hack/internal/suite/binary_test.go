package suite

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/layout"
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

func TestBuildFollowsWhatTheSuiteIsMadeOf(t *testing.T) {
	l := repository(t)
	first := content(t, binary(t, l))
	if again := content(t, binary(t, l)); !bytes.Equal(again, first) {
		t.Error("another binary of the same sources")
	}
	write(t, filepath.Join(l.Root, "data", "text"), "two")
	if second := content(t, binary(t, l)); bytes.Equal(second, first) {
		t.Error("an embedded file changed, the binary did not")
	}
}

func TestBuildLeavesTheBinaryOfAnotherRun(t *testing.T) {
	l := repository(t)
	first := binary(t, l)
	before := content(t, first)
	write(t, filepath.Join(l.Root, "data", "text"), "two")
	binary(t, l)
	if !bytes.Equal(content(t, first), before) {
		t.Error("a run goes on with a binary that was replaced")
	}
}

func TestBuildOfABrokenSuiteNamesTheFile(t *testing.T) {
	l := repository(t)
	write(t, filepath.Join(l.Root, "test", "e2e", "tiny", "tiny_test.go"), "package tiny\n\nvar x int = \"\"\n")
	_, err := build(t.Context(), l, "tiny", t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), "tiny_test.go:3") {
		t.Errorf("want an error that names the line, got %v", err)
	}
}

func TestUnknownSuite(t *testing.T) {
	for _, name := range []string{"nosuch", "../tiny", "tiny/.."} {
		if _, err := build(t.Context(), repository(t), name, t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "no suite") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func content(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func binary(t testing.TB, l layout.Layout) string {
	t.Helper()
	binary, err := build(t.Context(), l, "tiny", t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
