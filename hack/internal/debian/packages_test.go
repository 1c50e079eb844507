package debian

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/testutil"
)

// lockText is a lock file with every requested package, and more.
func lockText(more ...string) string {
	return strings.Join(requested, "=1\n") + "=1\n" + strings.Join(more, "\n")
}

func TestReadPins(t *testing.T) {
	for name, tc := range map[string]struct{ text, wantErr string }{
		"takes comments and blank lines":          {"# why\n\n" + lockText("libc6=2.36-9+deb12u13"), ""},
		"refuses a package twice":                 {lockText("systemd=2"), "package systemd is pinned twice"},
		"refuses a package without a version":     {lockText("libc6="), `"libc6="`},
		"refuses a second word":                   {lockText("libc6=1 2"), `"libc6=1 2"`},
		"refuses what is no lock":                 {lockText("libc6"), "want name=version, not \"libc6\""},
		"wants every package that images are for": {"systemd=252\n", "is not pinned: run `" + refreshCommand},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "packages.lock")
			testutil.WriteFile(t, file, tc.text)
			_, err := readPins(file, requested)
			testutil.CheckError(t, err, tc.wantErr)
		})
	}
}

func TestPinsAreReadAsTheyAreWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "packages.lock")
	testutil.WriteFile(t, file, lockText("zlib1g=1:1.2.13.dfsg-1"))
	want, err := readPins(file, requested)
	if err != nil {
		t.Fatal(err)
	}
	testutil.WriteFile(t, file, want.String())
	got, err := readPins(file, requested)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMovedErrorSaysWhatMovedAndWhatToDo(t *testing.T) {
	pinned := pins{"a": "1", "b": "1", "c": "1"}
	if err := movedError(pinned.changes(pins{"a": "1", "b": "1", "c": "1"})); err != nil {
		t.Errorf("an error of equal pins: %v", err)
	}
	err := movedError(pinned.changes(pins{"a": "1", "b": "2", "d": "3"}))
	testutil.CheckError(t, err, "gone from the mirrors: b 1 -> 2, c 1 -> none, d none -> 3; pin what there is now with `"+refreshCommand)
}

func TestExplainAptNamesTheVersionsThatAreGone(t *testing.T) {
	err := explainApt(&run.Error{Line: "mmdebstrap", Err: errors.New("exit status 25"), Tail: strings.Join([]string{
		"E: Version '1.6.20' for 'containerd' was not found",
		"E: Version '252.1' for 'systemd' was not found",
	}, "\n")})
	testutil.CheckError(t, err, "gone from the mirrors: containerd=1.6.20, systemd=252.1")
	if err := explainApt(&run.Error{Err: errors.New("exit status 100"), Tail: "E: Failed to fetch"}); strings.Contains(err.Error(), "gone from the mirrors") {
		t.Errorf("a mirror out of reach was taken for a missing version: %v", err)
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
	for _, set := range []Set{Nodes, Specs} {
		if _, err := readPins(set.lock+"-amd64.lock", set.packages); err != nil {
			t.Error(err)
		}
	}
}

func TestPinnedKnowsOnlyThePackagesAskedFor(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	testutil.WriteFile(t, Nodes.lockFile(l), "libc6=1\nipset=2\nzlib1g=3\n")
	got, err := Pinned(l, "ipset", "libc6")
	if want := []string{"ipset=2", "libc6=1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Pinned = %v, %v; want %v", got, err, want)
	}
	if got, err = Pinned(l); err != nil || !slices.Equal(got, []string{"ipset=2", "libc6=1", "zlib1g=3"}) {
		t.Errorf("all packages: %v, %v", got, err)
	}
	_, err = Pinned(l, "ipset", "kmod")
	testutil.CheckError(t, err, "package kmod is not pinned: run `"+refreshCommand)
}

func TestReadPinsSaysHowToWriteAMissingOne(t *testing.T) {
	_, err := readPins(filepath.Join(t.TempDir(), "packages-riscv64.lock"), nil)
	testutil.CheckError(t, err, refreshCommand)
}
