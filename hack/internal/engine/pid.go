package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidFiles are where dockerd and its containerd keep their numbers, below h.run,
// with the name that the process has.
var pidFiles = map[string]string{
	"docker.pid":                       "dockerd",
	"docker/containerd/containerd.pid": "containerd",
}

// clearStale removes pid files whose process is gone and whose number something
// else may have by now: dockerd would take that for itself and refuse to start.
func (h *host) clearStale() error {
	for name, process := range pidFiles {
		path := filepath.Join(h.run, name)
		if pid := readPID(path); pid > 0 && processName(pid) != process {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("removing a stale pid file: %w", err)
			}
		}
	}
	return nil
}

// daemonPID is the process of the daemon on this host, or 0 where there is none.
func (h *host) daemonPID() int {
	if pid := readPID(filepath.Join(h.run, "docker.pid")); pid > 0 && processName(pid) == "dockerd" {
		return pid
	}
	return 0
}

func readPID(path string) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid
}

func processName(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(data))
}
