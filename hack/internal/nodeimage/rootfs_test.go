package nodeimage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"podenv.dev/hack/internal/layout"
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

// debianTools are fakes of what installs packages; mmdebstrap makes a tar with $FAKE/status
// as dpkg's record.
var debianTools = map[string]string{
	"apt-get":    `echo "http://mirror.example/debian/ bookworm main"`,
	"apt-config": `echo 'Acquire::http::Proxy "http://proxy.example:3128";'`,
	"mmdebstrap": `cat >"$FAKE/sources"
for arg; do
	case $arg in
	*/rootfs.tar) echo "a root file system" >"$arg" ;;
	"--customize-hook=download /var/lib/dpkg/status "*) cp "$FAKE/status" "${arg##* }" ;;
	esac
done
if [ -e "$FAKE/says" ]; then cat "$FAKE/says" >&2; exit 25; fi`,
}

func TestRootFSIsMadeOnceFromTheMachinesMirrors(t *testing.T) {
	l := fakeRepository(t)
	dir, calls := fakeCommands(t, debianTools)
	writeFile(t, filepath.Join(dir, "status"), dpkgStatus("1"))
	for range 2 {
		file, err := rootFS(t.Context(), l, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "a root file system\n" {
			t.Errorf("%s is not what mmdebstrap made: %v", file, err)
		}
	}
	var made []string
	for _, call := range calls() {
		if strings.HasPrefix(call, "mmdebstrap ") {
			made = append(made, call)
		}
	}
	if len(made) != 1 {
		t.Fatalf("mmdebstrap ran %d times, want once:\n%s", len(made), strings.Join(made, "\n"))
	}
	for _, want := range []string{"systemd=1", `--aptopt=Acquire::http::Proxy "http://proxy.example:3128";`} {
		if !strings.Contains(made[0], want) {
			t.Errorf("mmdebstrap was not given %s: %s", want, made[0])
		}
	}
	if sources, err := os.ReadFile(filepath.Join(dir, "sources")); err != nil || string(sources) != "deb http://mirror.example/debian/ bookworm main\n" {
		t.Errorf("sources %q, %v", sources, err)
	}
}

func TestRootFSLeavesNothingHalfMade(t *testing.T) {
	for name, tc := range map[string]struct {
		version, says, wantErr string
		moved                  bool
	}{
		"another version came":    {"2", "", "systemd=1 (mirror has 2)", true},
		"apt misses a version":    {"1", "E: Version '1' for 'systemd' was not found", "systemd=1", true},
		"the mirror is not there": {"1", "E: Failed to fetch", "apt-get update", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := fakeRepository(t)
			dir, _ := fakeCommands(t, debianTools)
			writeFile(t, filepath.Join(dir, "status"), dpkgStatus(tc.version))
			if tc.says != "" {
				writeFile(t, filepath.Join(dir, "says"), tc.says)
			}
			_, err := rootFS(t.Context(), l, nil)
			checkError(t, err, tc.wantErr)
			if errors.Is(err, ErrPackagesMoved) != tc.moved {
				t.Errorf("error is ErrPackagesMoved: %v, want %v: %v", !tc.moved, tc.moved, err)
			}
			checkOnlyLock(t, l)
		})
	}
}

func TestMachineWithoutAMirrorOfTheSuiteIsToldSo(t *testing.T) {
	tools := map[string]string{"apt-get": "true", "apt-config": "true", "mmdebstrap": "exit 1"}
	l := fakeRepository(t)
	_, calls := fakeCommands(t, tools)
	_, err := rootFS(t.Context(), l, nil)
	checkError(t, err, "this machine's apt has no mirror of Debian "+suite)
	if !slices.ContainsFunc(calls(), func(c string) bool { return strings.HasSuffix(c, " update") }) {
		t.Errorf("apt's lists were not read before giving up: %v", calls())
	}
}

func TestRefreshPackagesPinsWhatTheMirrorsHave(t *testing.T) {
	l := fakeRepository(t)
	dir, _ := fakeCommands(t, debianTools)
	writeFile(t, filepath.Join(dir, "status"), dpkgStatus("2"))
	changes, err := RefreshPackages(t.Context(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != len(requested) || !slices.Contains(changes, "systemd 1 -> 2") {
		t.Errorf("changes %v", changes)
	}
	pinned, err := readPins(lockFile(l))
	if err != nil || pinned["systemd"] != "2" {
		t.Errorf("the lock file pins systemd %q: %v", pinned["systemd"], err)
	}
	if changes, err = RefreshPackages(t.Context(), l, nil); err != nil || len(changes) > 0 {
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
