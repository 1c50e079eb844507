package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidFiles are the PID files of dockerd and its containerd, below h.run, and the names of the
// processes.
var pidFiles = map[string]string{
	"docker.pid":                       "dockerd",
	"docker/containerd/containerd.pid": "containerd",
}

// clearStale removes the PID files of processes that are gone. If another process has the PID
// by now, dockerd would think that a dockerd runs, and refuse to start.
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

// daemonPID returns the PID of the daemon on this host, or 0.
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
