package debian

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var conntrack = Package{"conntrack", "1:1.4.7-1+b2"}

// fakeArchive stands for apt-get and apt-cache with an archive that has packages, given
// as name=version. What is asked of apt-get is written to the returned file. With stale
// set, the host's own lists have nothing yet.
func fakeArchive(t *testing.T, stale bool, packages ...string) (log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	t.Setenv("FAKE_LOG", log)
	t.Setenv("FAKE_PACKAGES", strings.Join(packages, " "))
	t.Setenv("FAKE_STALE", map[bool]string{true: "yes", false: ""}[stale])
	fakeCommand(t, "apt-get", `
own= words=
while [ $# -gt 0 ]; do
	case "$1" in
	-o) case "$2" in Dir::State::lists=*) own=yes ;; esac; shift ;;
	*) words="$words $1" ;;
	esac
	shift
done
echo "$words" >>"$FAKE_LOG"
set -- $words
verb=$1; shift
[ "$verb" = download ] || exit "${FAKE_UPDATE:-0}"
for p; do
	case " $FAKE_PACKAGES " in *" $p "*) ;; *) echo "E: Version for '$p' was not found" >&2; exit 100 ;; esac
	[ -z "$FAKE_STALE" ] || [ -n "$own" ] || { echo "E: no lists" >&2; exit 100; }
	echo "content of $p" >"$(echo "$p" | sed 's/=/_/; s/:/%3a/')_amd64.deb"
done`)
	fakeCommand(t, "apt-cache", `
for name; do :; done
for p in $FAKE_PACKAGES; do
	case "$p" in "$name="*) printf '%s:\n  Candidate: %s\n  Version table:\n     %s 500\n        500 http://x\n' "$name" "${p#*=}" "${p#*=}" ;; esac
done`)
	return log
}

func TestFetchDownloadsWhatIsMissing(t *testing.T) {
	log := fakeArchive(t, false, "conntrack=1:1.4.7-1+b2", "kmod=30-1")
	dir := filepath.Join(t.TempDir(), "debs")
	for _, tc := range []struct {
		name     string
		packages []Package
		asked    string
	}{
		{"nothing is there yet", []Package{conntrack}, " download conntrack=1:1.4.7-1+b2\n"},
		{"one of two is there", []Package{{"kmod", "30-1"}, conntrack}, " download kmod=30-1\n"},
		{"all are there", []Package{conntrack, {"kmod", "30-1"}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := os.WriteFile(log, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			debs, err := Fetch(t.Context(), dir, tc.packages, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range tc.packages {
				if data, err := os.ReadFile(debs[i]); err != nil || string(data) != "content of "+p.String()+"\n" {
					t.Errorf("%s: %q, %v", p, data, err)
				}
			}
			if asked, err := os.ReadFile(log); err != nil || string(asked) != tc.asked {
				t.Errorf("asked apt-get for %q, %v; want %q", asked, err, tc.asked)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestFetchReadsListsOfItsOwnIfTheHostsAreStale(t *testing.T) {
	log := fakeArchive(t, true, "conntrack=1:1.4.7-1+b2")
	if _, err := Fetch(t.Context(), t.TempDir(), []Package{conntrack}, nil); err != nil {
		t.Fatal(err)
	}
	const want = " download conntrack=1:1.4.7-1+b2\n update\n download conntrack=1:1.4.7-1+b2\n"
	if asked, err := os.ReadFile(log); err != nil || string(asked) != want {
		t.Errorf("asked apt-get for %q, %v; want %q", asked, err, want)
	}
}

func TestFetchSaysWhichPackageIsGone(t *testing.T) {
	for _, tc := range []struct {
		name      string
		archive   []string
		candidate string
		says      string
	}{
		{"a newer version replaced it", []string{"conntrack=1:1.4.8-1", "kmod=30-1"}, "1:1.4.8-1", "it has 1:1.4.8-1 now; podenv image --refresh-packages"},
		{"the archive has no such package", []string{"kmod=30-1"}, "", "it has no other version; podenv image --refresh-packages"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fakeArchive(t, false, tc.archive...)
			dir := t.TempDir()
			_, err := Fetch(t.Context(), dir, []Package{{"kmod", "30-1"}, conntrack}, nil)
			var gone *GoneError
			if !errors.As(err, &gone) {
				t.Fatalf("err = %v, want a GoneError", err)
			}
			if gone.Package != conntrack || gone.Candidate != tc.candidate || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v (%+v)", err, gone)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("left %v, %v", entries, err)
			}
		})
	}
}

func TestFetchWithoutANetworkSaysSo(t *testing.T) {
	fakeArchive(t, true)
	t.Setenv("FAKE_UPDATE", "100")
	_, err := Fetch(t.Context(), t.TempDir(), []Package{conntrack}, nil)
	if err == nil || !strings.Contains(err.Error(), "check the network") {
		t.Errorf("err = %v", err)
	}
}

func TestOffersReadsTheVersionTable(t *testing.T) {
	const policy = `kmod:
  Installed: 29-1
  Candidate: 30-2
  Version table:
     30-2 500
        500 http://mirror.test/debian bookworm/main amd64 Packages
 *** 29-1 100
        100 /var/lib/dpkg/status
`
	for version, want := range map[string]bool{"30-2": true, "29-1": true, "30": false, "28-1": false} {
		if got := offers(policy, version); got != want {
			t.Errorf("offers(%s) = %v", version, got)
		}
	}
	if got := candidate(policy); got != "30-2" {
		t.Errorf("candidate = %q", got)
	}
	if got := candidate("kmod:\n  Candidate: (none)\n"); got != "" {
		t.Errorf("candidate of no version = %q", got)
	}
}
