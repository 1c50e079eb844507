package engine

import (
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

// fake is a host whose commands are scripts.
type fake struct {
	*host
	*testutil.Commands
	t *testing.T
}

// theRepository is the one that this package is in.
var theRepository = layout.Layout{Root: "../../.."}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, Commands: testutil.NewCommands(t, "env", "sleep", "cat", "touch", "rm", "grep")}
	f.host = &host{
		state:        filepath.Join(f.Dir, "state"),
		run:          filepath.Join(f.Dir, "run"),
		cgroup:       filepath.Join(f.Dir, "cgroup"),
		config:       filepath.Join(f.Dir, "daemon.json"),
		startTimeout: 20 * time.Second,
		packages:     debian.Installer{LockTimeout: 20 * time.Second, LockPoll: time.Millisecond},
		missing:      func(int) ([]string, error) { return nil, nil },
	}
	if err := os.Mkdir(f.run, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_HOST", "")
	f.Script("docker", `
test "$1" = info || exit 0
test -e $F/denied && { echo '{"ServerErrors":["permission denied while trying to connect to the Docker daemon socket"]}'; exit 1; }
test -e $F/serves && { echo '{"ID":"ID","ServerVersion":"20.10.24","DefaultRuntime":"runc"}'; exit 0; }
echo 'Cannot connect to the Docker daemon' >&2; exit 1`)
	f.Script("dockerd", `echo $$ > $F/dockerd.pid; touch $F/serves; exec sleep 60`)
	t.Cleanup(f.stopDaemon)
	return f
}

func (f *fake) remove(name string) {
	f.t.Helper()
	if err := os.Remove(filepath.Join(f.Dir, name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) stopDaemon() {
	data, err := os.ReadFile(filepath.Join(f.Dir, "dockerd.pid"))
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
