package doctor

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podenv.dev/hack/internal/layout"
)

func TestSpace(t *testing.T) {
	p := place{"_output", "/x", 8 * gib, 4 * gib, "free some"}
	for name, test := range map[string]struct {
		free                  uint64
		status, found, remedy string
	}{
		"is enough":                  {8 * gib, OK, "8.0 GiB free for _output (/x)", ""},
		"is less than a first run's": {8*gib - 1, Warn, "may take 8 GiB", "free some"},
		"is enough for one run":      {4 * gib, Warn, "4.0 GiB", "free some"},
		"is not enough":              {4*gib - 1, Fail, "of 4 GiB needed", "free some"},
		"is none":                    {0, Fail, "0.0 GiB", "free some"},
	} {
		t.Run(name, func(t *testing.T) { space(p, test.free).want(t, test.status, test.found, test.remedy) })
	}
}

func TestNeedsOfOneFileSystemAddUp(t *testing.T) {
	dir := t.TempDir()
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		t.Fatal(err)
	}
	// Two thirds of what is free, twice: each is there, both are not.
	need := stat.Bavail * uint64(stat.Bsize) / 3 * 2
	a := place{"a", dir, 0, need, "x"}
	b := place{"b", filepath.Join(dir, "not", "there", "yet"), 0, need, "y"}
	if one := disks([]place{a}); len(one) != 1 || one[0].Status != OK {
		t.Errorf("one: %+v", one)
	}
	two := disks([]place{a, b})
	if len(two) != 1 {
		t.Fatalf("two places on one file system make %+v", two)
	}
	two[0].want(t, Fail, "for a, b", "x")
}

func TestPlacesAreThoseThatPodenvFills(t *testing.T) {
	commands(t, map[string]string{"go": "echo /the/cache"})
	for name, test := range map[string]struct{ dockerHost, want string }{
		"with the engine on this host": {"", "_output /r/_output, Go cache /the/cache, Docker's data /var/lib/docker"},
		"with an engine elsewhere":     {"tcp://127.0.0.1:1", "_output /r/_output, Go cache /the/cache"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOCKER_HOST", test.dockerHost)
			var got []string
			for _, p := range places(t.Context(), layout.Layout{Root: "/r"}, nil) {
				got = append(got, p.name+" "+p.path)
				if p.needed == 0 || p.needed > p.wanted {
					t.Errorf("%+v needs more than it wants", p)
				}
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("places %q, want %q", got, test.want)
			}
		})
	}
}
