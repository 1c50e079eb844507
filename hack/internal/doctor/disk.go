package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/run"
)

const gib = 1 << 30

// place is a directory that podenv fills. The needs of places on the same file system add up.
type place struct {
	name string
	path string
	// wanted is the free space, in bytes, for a first run and some work after it. needed is
	// the minimum for one run.
	wanted, needed uint64
	remedy         string
}

// places returns the directories, with estimates for one series and its stock release, and room for some
// work. _output and trees: two trees of 0.3 GiB, two builds of 1.2 GiB with their images, 0.5 GiB of packages.
// Go cache: 6 GiB for Kubernetes and the suites. Docker's data: two node images of 1 GiB, and 1 GiB in two nodes.
func places(ctx context.Context, l layout.Layout, e *engine.Engine) []place {
	all := []place{
		{"_output", l.Output(), 6 * gib, 3 * gib, "free some space: `podenv clean --dry-run` shows what may go"},
	}
	if cache, err := run.Command(ctx, "go", "env", "GOCACHE").Dir("/").Output(); err == nil && cache != "" {
		all = append(all, place{"Go cache", cache, 7 * gib, 4 * gib, "free some space: `go clean -cache` empties it, at the price of a full build"})
	}
	root := "/var/lib/docker"
	if e != nil && e.Info.DockerRootDir != "" {
		root = e.Info.DockerRootDir
	}
	if os.Getenv("DOCKER_HOST") == "" {
		all = append(all, place{"Docker's data", root, 5 * gib, 3 * gib, "free some space: `podenv clean --dry-run` shows node images that may go"})
	}
	return all
}

// disks checks each file system once, for all places on it.
func disks(all []place) []Finding {
	type disk struct {
		place
		id   unix.Fsid
		free uint64
	}
	var found []disk
	var findings []Finding
	for _, p := range all {
		var stat unix.Statfs_t
		if err := unix.Statfs(remedy.Existing(p.path), &stat); err != nil {
			findings = append(findings, warn("disk", fmt.Sprintf("%s (%s): %v", p.name, p.path, err), "let this user read the folder, or run podenv as root"))
			continue
		}
		i := slices.IndexFunc(found, func(d disk) bool { return d.id == stat.Fsid })
		if i < 0 {
			found = append(found, disk{p, stat.Fsid, stat.Bavail * uint64(stat.Bsize)}) // what this user may still write
			continue
		}
		found[i].name += ", " + p.name
		found[i].wanted += p.wanted
		found[i].needed += p.needed
	}
	for _, d := range found {
		findings = append(findings, space(d.place, d.free))
	}
	return findings
}

func space(p place, free uint64) Finding {
	found := fmt.Sprintf("%.1f GiB free for %s (%s)", float64(free)/gib, p.name, filepath.Clean(p.path))
	switch {
	case free < p.needed:
		return fail("disk", fmt.Sprintf("%s, of %d GiB needed", found, p.needed/gib), p.remedy)
	case free < p.wanted:
		return warn("disk", fmt.Sprintf("%s; a first run may take %d GiB", found, p.wanted/gib), p.remedy)
	}
	return ok("disk", "%s", found)
}

const (
	// memoryWanted is for two links of Kubernetes binaries at once, of 2 GiB each,
	// beside a cluster of two nodes, which takes 1.2 GiB.
	memoryWanted = 6 * gib
	// memoryNeeded is for one link, with the cluster.
	memoryNeeded = 3 * gib
)

// memory checks the available memory in a file such as /proc/meminfo.
func memory(path string) Finding {
	const check = "memory"
	data, err := os.ReadFile(path)
	if err != nil {
		return fail(check, err.Error(), "mount /proc")
	}
	_, after, _ := strings.Cut(string(data), "MemAvailable:")
	var kib uint64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		return warn(check, path+" does not say what is available", fmt.Sprintf("see that at least %d GiB are", memoryWanted/gib))
	}
	available := kib << 10
	found := fmt.Sprintf("%.1f GiB available", float64(available)/gib)
	switch {
	case available < memoryNeeded:
		return fail(check, found, fmt.Sprintf("free some: a build beside a cluster needs %d GiB", memoryNeeded/gib))
	case available < memoryWanted:
		return warn(check, found, "build with fewer jobs at once (GOFLAGS=-p=1), or free some")
	}
	return ok(check, "%s", found)
}
