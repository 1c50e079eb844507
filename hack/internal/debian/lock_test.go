package debian

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseLock(t *testing.T) {
	for _, tc := range []struct {
		name string
		lock string
		want []Package
		err  string
	}{
		{name: "an empty lock pins nothing"},
		{
			name: "comments and blank lines are ignored",
			lock: "# why\n\nlibc6=2.36-9+deb12u14\n  conntrack=1:1.4.7-1+b2  \n",
			want: []Package{{"libc6", "2.36-9+deb12u14"}, {"conntrack", "1:1.4.7-1+b2"}},
		},
		{name: "a package without a version is an error that names the line", lock: "# why\nlibc6\n", err: "line 2"},
		{name: "a package with an empty version is an error", lock: "libc6=\n", err: `"libc6="`},
		{name: "a second word is an error", lock: "libc6=1 2\n", err: `"libc6=1 2"`},
		{name: "a package twice is an error", lock: "a=1\na=2\n", err: "line 2: package a is pinned twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseLock([]byte(tc.lock))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("err = %v, want %q in it", err, tc.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("ParseLock = %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestRefreshLockWritesWhatParseLockReads(t *testing.T) {
	fakeCommand(t, "apt-get", `
case "$*" in *Dir::State::status=/dev/null*install\ conntrack) ;; *) echo "unexpected: $*" >&2; exit 1;; esac
cat <<'OUT'
Reading package lists...
Inst libc6 (2.36-9+deb12u14 Debian:12.15/oldstable [amd64])
Inst libgcc-s1 (12.2.0-14+deb12u1 Debian:12.15/oldstable [amd64]) []
Inst conntrack (1:1.4.7-1+b2 Debian:12.15/oldstable [amd64])
Conf conntrack (1:1.4.7-1+b2 Debian:12.15/oldstable [amd64])
OUT`)
	file := filepath.Join(t.TempDir(), "x.lock")
	want := []Package{{"libc6", "2.36-9+deb12u14"}, {"libgcc-s1", "12.2.0-14+deb12u1"}, {"conntrack", "1:1.4.7-1+b2"}}
	for _, wantChanged := range []bool{true, false} {
		changed, err := RefreshLock(t.Context(), file, "two lines\nof comment", "conntrack")
		if err != nil || changed != wantChanged {
			t.Fatalf("RefreshLock = %v, %v; want %v", changed, err, wantChanged)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseLock(data)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the lock pins %v, %v; want %v", got, err, want)
	}
	if !strings.HasPrefix(string(data), "# two lines\n# of comment\n") {
		t.Errorf("the lock begins %q", data)
	}
}

// fakeCommand puts a shell script called name before all others in PATH.
func fakeCommand(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}
