// Package testutil has helpers for tests.
package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// CheckError fails the test unless err contains want. If want is empty, err must be nil.
func CheckError(t testing.TB, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case want != "" && err == nil:
		t.Errorf("no error, want one with %q", want)
	case err != nil && !strings.Contains(err.Error(), want):
		t.Errorf("error %q, want one with %q", err, want)
	}
}

// WriteFile writes text to a file, and creates its directory. A script is executable.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}

// Status is a command of test scripts. It runs a command and checks its exit status:
// status 2 podenv frobnicate.
func Status(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got, err = exit.ExitCode(), nil
	}
	ts.Check(err)
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// Commands are shell scripts in the directory bin of Dir, which is all of PATH. Other files in Dir,
// which is $F in the scripts, are their state. The file calls has the command lines.
type Commands struct {
	Dir  string
	t    testing.TB
	path string // the original PATH
}

// NewCommands returns Commands that are links to the real commands called names.
func NewCommands(t *testing.T, names ...string) *Commands {
	t.Helper()
	c := &Commands{t.TempDir(), t, os.Getenv("PATH")}
	t.Setenv("PATH", filepath.Join(c.Dir, "bin"))
	for _, name := range names {
		c.Link(name)
	}
	return c
}

// Link adds a script that executes a real command. A test could write through a symbolic link.
func (c *Commands) Link(name string) {
	c.t.Helper()
	c.Write("bin/"+name, fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", c.Real(name)))
}

// Real returns the path of a real command.
func (c *Commands) Real(name string) string {
	c.t.Helper()
	for _, dir := range filepath.SplitList(c.path) {
		path := filepath.Join(dir, name)
		if stat, err := os.Stat(path); err == nil && stat.Mode().IsRegular() {
			return path
		}
	}
	c.t.Fatalf("%s is not in PATH", name)
	return ""
}

// Script adds a command that records its command line and then runs body.
func (c *Commands) Script(name, body string) {
	c.t.Helper()
	c.Write("bin/"+name, fmt.Sprintf("#!/bin/sh\nF=%s\necho %s \"$@\" >> $F/calls\n%s\n", c.Dir, name, body))
}

// Write writes a file in Dir.
func (c *Commands) Write(name, text string) {
	c.t.Helper()
	WriteFile(c.t, filepath.Join(c.Dir, name), text)
}

// Calls returns the command lines so far that start with one of commands.
func (c *Commands) Calls(commands ...string) []string {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.Dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	var calls []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		for _, command := range commands {
			if line == command || strings.HasPrefix(line, command+" ") {
				calls = append(calls, line)
			}
		}
	}
	return calls
}
