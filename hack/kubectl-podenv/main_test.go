package main

import (
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"podenv.dev/hack/internal/testutil"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kubectl-podenv": main})
}

// Each file of testdata is a script of an operator's commands.
func TestCommandLine(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": testutil.Status, "apiserver": apiserver},
	})
}

var docCommand = regexp.MustCompile("kubectl podenv ([a-z][^`)#\"\n]*)")

// TestTheDocsNameWhatExists parses the command lines in docs/.
func TestTheDocsNameWhatExists(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range docCommand.FindAllSubmatch(text, -1) {
			words := strings.Fields(string(m[1]))
			cmd, rest, err := newRoot(io.Discard, io.Discard).Find(words)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err != nil || cmd.Name() != words[0] && cmd.Parent().Name() != words[0] {
				t.Errorf("%s: kubectl podenv %s: %v", filepath.Base(page), m[1], err)
			}
			commands++
		}
	}
	if commands < 5 {
		t.Errorf("only %d commands found: does docCommand still match?", commands)
	}
}

// maxSize is how large the program may be, in bytes.
const maxSize = 60_000_000

// TestProgramForAnyHost builds the program as `make kubectl-podenv` does.
func TestProgramForAnyHost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubectl-podenv")
	if _, err := os.ReadFile(filepath.Join("..", "..", "Makefile")); err != nil { // so that Go's cache knows of it
		t.Fatal(err)
	}
	build := exec.Command("make", "--no-print-directory", "kubectl-podenv", "PLUGIN="+file)
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxSize {
		t.Errorf("it has %d bytes, want at most %d", info.Size(), maxSize)
	}
	program, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if program.Section(".interp") != nil {
		t.Error("it is not static")
	}
}

// TestLinksNoHarness: the program is for hosts that build nothing.
func TestLinksNoHarness(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		if strings.HasPrefix(name, "podenv.dev/hack/internal/") && name != "podenv.dev/hack/internal/jsonout" {
			t.Errorf("it links %s", name)
		}
	}
}
