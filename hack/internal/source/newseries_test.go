package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
)

func TestPinCreatesASeriesThatAssembles(t *testing.T) {
	w := newWorld(t)
	s, err := Pin(t.Context(), w.layout, "v1.32", older, nil)
	w.ok(err)
	if s.Name != "v1.32" || s.Release != older {
		t.Errorf("the series is %s on %s", s.Name, s.Release)
	}
	const want = `// The release that this series of patches is based on. ` + "`podenv tree`" + ` downloads these
// modules and checks them against go.sum; nothing imports this module.
module podenv.dev/patches/v1.32

go 1.24.0

require (
	k8s.io/api v0.32.13
	k8s.io/kubernetes v1.32.13
)
`
	got, err := os.ReadFile(filepath.Join(s.Dir, "go.mod"))
	w.ok(err)
	if string(got) != want {
		t.Errorf("go.mod is\n%s", got)
	}
	w.series = s
	w.mustAssemble()

	again, err := Pin(t.Context(), w.layout, "v1.32", older, nil)
	w.ok(err)
	if again.Release != s.Release {
		t.Errorf("the second time it is on %s, was on %s", again.Release, s.Release)
	}
}

func TestPinRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ release, want string }{
		"what is no release":              {"v1.33", "is not a release"},
		"a release that there is not":     {"v1.31.99", "there may be no such release"},
		"to move a series to another one": {"v1.33.14", "podenv rebase --to v1.33 --release v1.33.14"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := Pin(t.Context(), w.layout, semver.MajorMinor(tc.release), tc.release, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q in it", err, tc.want)
			}
			folders, err := filepath.Glob(w.layout.Patches("*"))
			w.ok(err)
			if len(folders) != 1 {
				t.Errorf("patches/ has %v", folders)
			}
		})
	}
}
