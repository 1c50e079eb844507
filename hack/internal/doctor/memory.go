package doctor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

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
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemAvailable:" {
			continue
		}
		kib, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			break
		}
		return judgeMemory(kib << 10)
	}
	return warn(check, path+" does not say what is available", fmt.Sprintf("see that at least %d GiB are", memoryWanted/gib))
}

func judgeMemory(available uint64) Finding {
	found := fmt.Sprintf("%.1f GiB available", float64(available)/gib)
	switch {
	case available < memoryNeeded:
		return fail("memory", found, fmt.Sprintf("free some: a build beside a cluster needs %d GiB", memoryNeeded/gib))
	case available < memoryWanted:
		return warn("memory", found, "build with fewer jobs at once (GOFLAGS=-p=1), or free some")
	}
	return ok("memory", "%s", found)
}
