package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The controllers that the kubelet needs, by version of cgroups.
var (
	controllersV1 = []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer", "blkio"}
	// cpuset is often not delegated. Without it, the kubelet cannot pin CPUs, but works otherwise.
	controllersV2 = []string{"cpu", "memory", "pids"}
)

// cgroups examines the cgroup file systems mounted at root.
func cgroups(root string) Finding {
	const check = "cgroups"
	if data, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")); err == nil {
		if missing := without(controllersV2, strings.Fields(string(data))); len(missing) > 0 {
			return fail(check, "v2, without "+strings.Join(missing, ", "), "start the kernel, or this container, with these controllers")
		}
		return ok(check, "v2")
	}
	var mounted []string
	entries, err := os.ReadDir(root)
	for _, entry := range entries {
		// cpu and cpuacct may be mounted together, with links to one directory.
		mounted = append(mounted, strings.Split(entry.Name(), ",")...)
	}
	if err != nil || !slices.Contains(mounted, "memory") {
		return fail(check, "none mounted in "+root, "`apt-get install cgroupfs-mount && cgroupfs-mount` as root")
	}
	if missing := without(controllersV1, mounted); len(missing) > 0 {
		return fail(check, "v1, without "+strings.Join(missing, ", "), "`apt-get install cgroupfs-mount && cgroupfs-mount` as root, or start the kernel with these controllers")
	}
	version := "v1"
	if _, err := os.Stat(filepath.Join(root, "unified", "cgroup.procs")); err == nil {
		version = "v1 with a v2 hybrid"
	}
	return ok(check, "%s: works with the node image, which has systemd 252 and lets kubelets of v1.35 and later run on v1; systemd 257 and later need v2", version)
}

func without(wanted, have []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return slices.Contains(have, name) })
}
