package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/testutil"
)

// dpkgStatus is dpkg's record of a root file system in which every requested package has
// that version.
func dpkgStatus(version string) string {
	status := ""
	for _, name := range requested {
		status += fmt.Sprintf("Package: %s\nStatus: install ok installed\nArchitecture: all\nVersion: %s\n\n", name, version)
	}
	return status
}

// newMirror returns a host whose mirror has that version of every requested package, and a
// repository that pins each at version 1. mmdebstrap makes a copy of $F/rootfs.tar.
func newMirror(t *testing.T, version string) (*fake, layout.Layout) {
	t.Helper()
	dpkgQuery, err := exec.LookPath("dpkg-query")
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t)
	f.Script("dpkg-query", `case "$*" in *--admindir=*) exec `+dpkgQuery+` "$@" ;; esac; cat $F/installed`)
	f.Script("apt-get", `echo "http://mirror.example/debian/ bookworm main"`)
	f.Script("apt-config", `echo 'Acquire::http::Proxy "http://proxy.example:3128";'`)
	f.Script("mmdebstrap", `cat >$F/sources
[ "$SOURCE_DATE_EPOCH" = 86400 ] || exit 26
for arg; do
	case $arg in
	*/rootfs.tar) cat $F/rootfs.tar >"$arg" ;;
	"--customize-hook=download /var/lib/dpkg/status "*) cat $F/status >"${arg##* }" ;;
	esac
done
if [ -e $F/says ]; then cat $F/says >&2; exit 25; fi`)
	f.Write("installed", "mmdebstrap installed\n")
	f.Write("status", dpkgStatus(version))
	f.Write("rootfs.tar", "a root file system")
	l := layout.Layout{Root: t.TempDir()}
	testutil.WriteFile(t, Nodes.lockFile(l), lockText())
	return f, l
}

func TestRootFSIsMadeOnceFromTheMachinesMirrors(t *testing.T) {
	f, l := newMirror(t, "1")
	var makers sync.WaitGroup
	for range 3 {
		makers.Go(func() {
			file, err := Nodes.RootFS(t.Context(), l, nil)
			if err != nil {
				t.Error(err)
			} else if got, err := os.ReadFile(file); err != nil || string(got) != "a root file system" {
				t.Errorf("%s is not what mmdebstrap made: %v", file, err)
			}
		})
	}
	makers.Wait()
	made := slices.DeleteFunc(f.calls(), func(call string) bool { return !strings.HasPrefix(call, "mmdebstrap ") })
	if len(made) != 1 {
		t.Fatalf("mmdebstrap ran %d times, want once:\n%s", len(made), strings.Join(made, "\n"))
	}
	for _, want := range []string{"systemd=1", `--aptopt=Acquire::http::Proxy "http://proxy.example:3128";`, "path-include=/usr/share/doc/*/copyright"} {
		if !strings.Contains(made[0], want) {
			t.Errorf("mmdebstrap was not given %s: %s", want, made[0])
		}
	}
	if sources, err := os.ReadFile(filepath.Join(f.Dir, "sources")); err != nil || string(sources) != "deb http://mirror.example/debian/ bookworm main\n" {
		t.Errorf("sources %q, %v", sources, err)
	}
}

func TestAStepThatWaitsForAnotherSaysSo(t *testing.T) {
	_, l := newMirror(t, "1")
	logs := t.TempDir()
	step := progress.New(io.Discard, false, 80, logs).Step("waits")
	rootFSMutex.Lock()
	made := make(chan error)
	go func() {
		_, err := Nodes.RootFS(t.Context(), l, step)
		made <- err
	}()
	err := poll.Until(t.Context(), time.Minute, func(context.Context) error {
		if text, err := os.ReadFile(filepath.Join(logs, "waits.log")); !strings.Contains(string(text), "waiting for another step") {
			return fmt.Errorf("the step says %q (%v)", text, err)
		}
		return nil
	})
	rootFSMutex.Unlock()
	if err := errors.Join(err, <-made, step.End(nil)); err != nil {
		t.Error(err)
	}
}

func TestRootFSLeavesNothingHalfMade(t *testing.T) {
	for name, tc := range map[string]struct {
		version, says, wantErr string
		moved                  bool
	}{
		"another version came":    {"2", "", "systemd 1 -> 2", true},
		"apt misses a version":    {"1", "E: Version '1' for 'systemd' was not found", "systemd=1", true},
		"the mirror is not there": {"1", "E: Failed to fetch", "apt-get update", false},
	} {
		t.Run(name, func(t *testing.T) {
			f, l := newMirror(t, tc.version)
			if tc.says != "" {
				f.Write("says", tc.says)
			}
			testutil.WriteFile(t, filepath.Join(l.Cache("rootfs"), "new", "rootfs.tar"), "what a killed process left")
			_, err := Nodes.RootFS(t.Context(), l, nil)
			testutil.CheckError(t, err, tc.wantErr)
			if strings.Contains(err.Error(), "gone from the mirrors") != tc.moved {
				t.Errorf("error is about moved packages: %v, want %v: %v", !tc.moved, tc.moved, err)
			}
			checkOnlyLock(t, l)
		})
	}
}

func TestRootFSInstallsMmdebstrap(t *testing.T) {
	f, l := newMirror(t, "1")
	f.Script("sudo", `shift; exec "$@"`)
	f.Write("installed", "")
	if _, err := Nodes.RootFS(t.Context(), l, nil); err != nil {
		t.Fatal(err)
	}
	if calls := f.calls(); !slices.Contains(calls, install+" mmdebstrap") {
		t.Errorf("mmdebstrap was not installed: %v", calls)
	}
}

func TestMissingMirrorOfTheSuiteIsAnError(t *testing.T) {
	f, l := newMirror(t, "1")
	f.Script("apt-get", "")
	_, err := Nodes.RootFS(t.Context(), l, nil)
	testutil.CheckError(t, err, "this machine's apt has no mirror of Debian "+suite)
	if !slices.ContainsFunc(f.calls(), func(c string) bool { return strings.HasSuffix(c, " update") }) {
		t.Errorf("apt's lists were not read before giving up: %v", f.calls())
	}
}

func TestRefreshPackagesPinsWhatTheMirrorsHave(t *testing.T) {
	_, l := newMirror(t, "2")
	changes, err := Nodes.RefreshPackages(t.Context(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != len(requested) || !slices.Contains(changes, "systemd 1 -> 2") {
		t.Errorf("changes %v", changes)
	}
	if pinned, err := Pinned(l, "systemd"); err != nil || pinned[0] != "systemd=2" {
		t.Errorf("the lock file pins %v: %v", pinned, err)
	}
	if changes, err = Nodes.RefreshPackages(t.Context(), l, nil); err != nil || len(changes) > 0 {
		t.Errorf("a second refresh changes %v: %v", changes, err)
	}
	checkOnlyLock(t, l)
}

// checkOnlyLock fails if the cache of root file systems has anything but its lock.
func checkOnlyLock(t testing.TB, l layout.Layout) {
	t.Helper()
	entries, err := os.ReadDir(l.Cache("rootfs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "lock" {
			t.Errorf("%s is left in the cache", e.Name())
		}
	}
}
