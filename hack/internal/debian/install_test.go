package debian

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/testutil"
)

// fake is a host whose commands are scripts.
type fake struct {
	Installer
	*testutil.Commands
}

func newFake(t *testing.T) *fake {
	t.Helper()
	return &fake{
		Installer{LockTimeout: 20 * time.Second, LockPoll: time.Millisecond},
		testutil.NewCommands(t, "env", "cat", "touch", "true"),
	}
}

// debian adds dpkg-query, which knows the packages installed, and apt-get, whose
// install does body.
func (f *fake) debian(installed, body string) {
	f.Write("installed", strings.ReplaceAll(installed, ", ", "\n")+"\n")
	f.Script("dpkg-query", `cat $F/installed; exit 1`) // 1: it does not know all
	f.Script("apt-get", "case \"$*\" in *update*) touch $F/updated; exit 0;; esac\n"+body)
}

// calls returns the command lines so far of apt-get, mmdebstrap and sudo.
func (f *fake) calls() []string { return f.Calls("apt-get", "mmdebstrap", "sudo") }

const (
	install = "apt-get --quiet install --yes --no-install-recommends"
	update  = "apt-get --quiet update"
)

func TestEnsureInstalled(t *testing.T) {
	for name, test := range map[string]struct {
		host  func(*fake)
		names []string
		calls []string // of apt-get and sudo
	}{
		"calls no apt where nothing is missing": {
			host:  func(f *fake) { f.debian("a installed, b installed", "exit 1") },
			names: []string{"a", "b"},
		},
		"installs only what is missing": {
			host:  func(f *fake) { f.debian("a installed", "") },
			names: []string{"a", "b", "c"}, calls: []string{install + " b c"},
		},
		"installs what was removed but left its configuration": {
			host:  func(f *fake) { f.debian("a config-files, ab installed", "") },
			names: []string{"a"}, calls: []string{install + " a"},
		},
		"updates the lists of a machine that has none": {
			host: func(f *fake) {
				f.debian("", `test -e $F/updated && exit 0; echo 'E: Unable to locate package a' >&2; exit 100`)
			},
			names: []string{"a"}, calls: []string{install + " a", update, install + " a"},
		},
		"updates lists that are too old": {
			host: func(f *fake) {
				f.debian("", `test -e $F/updated && exit 0; echo 'E: Failed to fetch x  404  Not Found' >&2; exit 100`)
			},
			names: []string{"a"}, calls: []string{install + " a", update, install + " a"},
		},
		"waits for another apt": {
			host: func(f *fake) {
				f.debian("", `test -e $F/tried && exit 0; touch $F/tried; echo 'E: Could not get lock /var/lib/dpkg/lock-frontend' >&2; exit 100`)
			},
			names: []string{"a"}, calls: []string{install + " a", install + " a"},
		},
		"uses sudo where the user is not root": {
			host: func(f *fake) {
				f.UID = 1000
				f.debian("", "")
				f.Script("sudo", `shift; exec "$@"`)
			},
			names: []string{"a"},
			calls: []string{"sudo -n true", "sudo -n env DEBIAN_FRONTEND=noninteractive LC_ALL=C RUNLEVEL=1 " + install + " a", install + " a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			test.host(f)
			if err := f.EnsureInstalled(t.Context(), nil, test.names...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.calls, f.calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnsureInstalledSaysWhatToDo(t *testing.T) {
	failing := func(said string) func(*fake) {
		return func(f *fake) { f.debian("", "echo 'E: "+said+"' >&2; exit 100") }
	}
	for name, test := range map[string]struct {
		host func(*fake)
		want []string
	}{
		"not Debian":           {func(*fake) {}, []string{"not Debian", "your distribution"}},
		"no root and no sudo":  {func(f *fake) { f.UID = 1000; f.debian("", "") }, []string{"no sudo", "apt-get install --no-install-recommends a"}},
		"a sudo with password": {func(f *fake) { f.UID = 1000; f.debian("", ""); f.Script("sudo", "exit 1") }, []string{"asks for a password", "apt-get install"}},
		"no network":           {failing("Failed to fetch http://x  Temporary failure resolving x"), []string{"check the network"}},
		"a lock for too long": {func(f *fake) {
			failing("Could not get lock /var/lib/dpkg/lock-frontend")(f)
			f.LockTimeout = 50 * time.Millisecond
		}, []string{"Could not get lock", "wait for it"}},
		"an interrupted dpkg":         {failing("dpkg was interrupted, you must"), []string{"dpkg --configure -a"}},
		"no disk":                     {failing("write error: No space left on device"), []string{"disk is full"}},
		"something else":              {failing("Sub-process returned an error code"), []string{"Sub-process", "by hand"}},
		"a package that is not there": {failing("Unable to locate package a"), []string{"Unable to locate package a", "sources.list"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			test.host(f)
			err := f.EnsureInstalled(t.Context(), nil, "a")
			testutil.CheckError(t, err, "missing packages: ")
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error does not say %q:\n%v", part, err)
				}
			}
		})
	}
}
