package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/testutil"
)

// fake is a host whose commands are shell scripts in the folder bin, which is all of
// PATH. Files beside it, $F in the scripts, are the host's state; the file "calls" has
// the command lines.
type fake struct {
	*host
	t    testing.TB
	dir  string
	path string // the PATH of the real host
}

// theRepository is the one that this package is in.
var theRepository = layout.Layout{Root: "../../.."}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, dir: t.TempDir(), path: os.Getenv("PATH")}
	f.host = &host{
		state:        filepath.Join(f.dir, "state"),
		run:          filepath.Join(f.dir, "run"),
		cgroup:       filepath.Join(f.dir, "cgroup"),
		config:       filepath.Join(f.dir, "daemon.json"),
		startTimeout: 20 * time.Second,
		packages:     debian.Installer{LockTimeout: 20 * time.Second, LockPoll: time.Millisecond},
		missing:      func(int) ([]string, error) { return nil, nil },
	}
	for _, dir := range []string{f.run, filepath.Join(f.dir, "bin")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"env", "sleep", "cat", "touch", "rm", "grep"} {
		f.link(name)
	}
	t.Setenv("PATH", filepath.Join(f.dir, "bin"))
	t.Setenv("DOCKER_HOST", "")
	f.script("docker", `
test "$1" = info || exit 0
test -e $F/denied && { echo '{"ServerErrors":["permission denied while trying to connect to the Docker daemon socket"]}'; exit 1; }
test -e $F/serves && { echo '{"ID":"ID","ServerVersion":"20.10.24","DefaultRuntime":"runc"}'; exit 0; }
echo 'Cannot connect to the Docker daemon' >&2; exit 1`)
	f.script("dockerd", `echo $$ > $F/dockerd.pid; touch $F/serves; exec sleep 60`)
	t.Cleanup(f.stopDaemon)
	return f
}

// link makes a real command one of the host's: a script that executes it, not a link,
// through which a test could write.
func (f *fake) link(name string) {
	f.t.Helper()
	f.write("bin/"+name, fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", f.real(name)))
}

// real is the path of a command of the real host.
func (f *fake) real(name string) string {
	f.t.Helper()
	for _, dir := range filepath.SplitList(f.path) {
		path := filepath.Join(dir, name)
		if stat, err := os.Stat(path); err == nil && stat.Mode().IsRegular() {
			return path
		}
	}
	f.t.Fatalf("%s is not in PATH", name)
	return ""
}

// script makes a command that notes its command line and goes on with body.
func (f *fake) script(name, body string) {
	f.t.Helper()
	f.write("bin/"+name, fmt.Sprintf("#!/bin/sh\nF=%s\necho %s \"$@\" >> $F/calls\n%s\n", f.dir, name, body))
}

func (f *fake) write(name, text string) {
	f.t.Helper()
	testutil.WriteFile(f.t, filepath.Join(f.dir, name), text)
}

func (f *fake) remove(name string) {
	f.t.Helper()
	if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
		f.t.Fatal(err)
	}
}

// calls are the command lines so far of the commands called names.
func (f *fake) calls(names ...string) []string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	var calls []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		for _, name := range names {
			if line == name || strings.HasPrefix(line, name+" ") {
				calls = append(calls, line)
			}
		}
	}
	return calls
}

func (f *fake) stopDaemon() {
	data, err := os.ReadFile(filepath.Join(f.dir, "dockerd.pid"))
	if err != nil {
		return
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// bound takes CAP_SYS_RESOURCE from the host.
func (f *fake) bound() {
	f.missing = func(int) ([]string, error) { return []string{"CAP_SYS_RESOURCE"}, nil }
}
