package nodeimage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/run"
)

// pins is a lock text with every requested package, and more.
func pins(more ...string) string {
	return strings.Join(requested, "=1\n") + "=1\n" + strings.Join(more, "\n")
}

func TestParseLock(t *testing.T) {
	for name, tc := range map[string]struct{ text, wantErr string }{
		"takes comments and blank lines":            {"# why\n\n" + pins("libc6=2.36-9+deb12u13 # note"), ""},
		"refuses a package without a version":       {pins("libc6"), `"libc6" is not name=version`},
		"refuses an empty version":                  {pins("libc6="), `"libc6=" is not name=version`},
		"refuses two words":                         {pins("libc6 = 1"), `"libc6 = 1" is not name=version`},
		"refuses a package that is pinned twice":    {pins("libc6=1", "libc6=2"), "package libc6 is pinned twice"},
		"wants every package that the image is for": {"systemd=252\n", "is not pinned: run `" + refreshCommand},
		"names the line":                            {"systemd=252\n\nlibc6", "3: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseLock(strings.NewReader(tc.text))
			checkError(t, err, tc.wantErr)
		})
	}
}

func TestLockIsReadAsItIsWritten(t *testing.T) {
	want, err := parseLock(strings.NewReader(pins("zlib1g=1:1.2.13.dfsg-1")))
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseLock(strings.NewReader(want.String()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCompareSaysWhatMovedAndWhatToDo(t *testing.T) {
	pinned := lock{"a": "1", "b": "1", "c": "1"}
	if err := pinned.compare(lock{"a": "1", "b": "1", "c": "1"}); err != nil {
		t.Errorf("compare of equal locks: %v", err)
	}
	err := pinned.compare(lock{"a": "1", "b": "2", "d": "3"})
	if !errors.Is(err, ErrPackagesMoved) {
		t.Fatalf("got %v, want ErrPackagesMoved", err)
	}
	for _, want := range []string{"b=1 (mirror has 2)", "c=1 (no longer installed)", "d=3 (not pinned)", refreshCommand} {
		checkError(t, err, want)
	}
}

func TestExplainAptNamesTheVersionsThatAreGone(t *testing.T) {
	err := explainApt(&run.Error{Line: "mmdebstrap", Err: errors.New("exit status 25"), Tail: strings.Join([]string{
		"E: Version '1.6.20' for 'containerd' was not found",
		"E: Version '252.1' for 'systemd' was not found",
	}, "\n")})
	if !errors.Is(err, ErrPackagesMoved) {
		t.Fatalf("got %v, want ErrPackagesMoved", err)
	}
	checkError(t, err, "containerd=1.6.20, systemd=252.1")
	if err := explainApt(&run.Error{Err: errors.New("exit status 100"), Tail: "E: Failed to fetch"}); errors.Is(err, ErrPackagesMoved) {
		t.Errorf("a mirror out of reach was taken for a missing version: %v", err)
	}
}

func TestParseStatusReadsInstalledPackagesOnly(t *testing.T) {
	const status = `Package: libc6
Status: install ok installed
Version: 2.36-9
Description: GNU C Library
 Version: of a continued line

Package: gone
Status: deinstall ok config-files
Version: 1
`
	got, err := parseStatus(strings.NewReader(status))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lock{"libc6": "2.36-9"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSuiteSourcesTakesTheMirrorsOfTheSuiteOnly(t *testing.T) {
	got := suiteSources("http://mirror.example/debian/ bookworm main\nhttp://mirror.example/debian/ bookworm main\n" +
		"http://mirror.example/security/ bookworm-security main\nhttps://apt.example/ nodistro main\nhttp://mirror.example/debian/ bookworm non-free\n")
	if want := "deb http://mirror.example/debian/ bookworm main\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRepositoryPinsPackagesForAmd64(t *testing.T) {
	if _, err := readLock(filepath.Join(repository(t).Root, "hack/internal/nodeimage/packages-amd64.lock")); err != nil {
		t.Error(err)
	}
}

func TestReadLockSaysHowToWriteAMissingOne(t *testing.T) {
	_, err := readLock(filepath.Join(t.TempDir(), "packages-riscv64.lock"))
	checkError(t, err, refreshCommand)
}

// repository is this one.
func repository(t testing.TB) layout.Layout {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return layout.Layout{Root: root}
}

// checkError fails unless err's text has want in it; an empty want is no error.
func checkError(t testing.TB, err error, want string) {
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
