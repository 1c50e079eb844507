package nodeimage

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/testutil"
)

// fakeCommands puts shell scripts first in PATH, under the names that they have in
// scripts. They run with the folder in $FAKE; calls returns the command lines so far.
func fakeCommands(t testing.TB, scripts map[string]string) (dir string, calls func() []string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range scripts {
		text := "#!/bin/sh\nset -eu\nFAKE=" + dir + "\necho " + name + ` "$@" >>"$FAKE/calls"` + "\n" + script
		testutil.WriteFile(t, filepath.Join(dir, "bin", name), text)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	return dir, func() []string {
		data, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

// goBuilds is a go command that writes the file of `go build -o` instead of compiling: a
// script that prints its name, and of ctr one that prints a runtime spec. What it is asked
// to build is in the calls, with cgo's state. Its other commands are the real ones.
func goBuilds(t testing.TB) string {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	return `[ "$1" = build ] || exec ` + real + ` "$@"
echo "CGO_ENABLED=$CGO_ENABLED $*" >>"$FAKE/calls"
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\n[ "$*" != "oci spec" ] || echo '"'"'{"process":{"cwd":"/two"}}'"'"'\n# %s\n' "$2" >"$2"
chmod +x "$2"`
}

// packagesLock is where a repository pins Debian packages.
var packagesLock = "hack/internal/debian/packages-" + runtime.GOARCH + ".lock"

// fakeRepository has what Base reads from a repository: the pins, the go.mod that pins
// kind, and the folders of the container runtime.
func fakeRepository(t testing.TB) layout.Layout {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	for _, name := range []string{"go.mod", "go.sum", packagesLock} {
		data, err := os.ReadFile(filepath.Join(layout.MustFind().Root, name))
		if err != nil {
			t.Fatal(err)
		}
		testutil.WriteFile(t, filepath.Join(l.Root, name), string(data))
	}
	for _, program := range runtimePrograms {
		if err := os.MkdirAll(filepath.Join(l.Root, program.Dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return l
}
