package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// delegate prepares the cgroup at root for the daemon's containers. In cgroup v2, a cgroup other
// than the machine's root can enable controllers for its children only if it has no processes
// ("no internal process constraint", cgroups(7)), so delegate moves them to a child cgroup. This
// is needed if the host is a container whose init does not do it. Elsewhere nothing changes.
func delegate(root string) error {
	// The machine's root cgroup has no type, and cgroup v1 has no such file.
	if _, err := os.Stat(filepath.Join(root, "cgroup.type")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	if len(strings.Fields(string(enabled))) == len(strings.Fields(string(controllers))) {
		return nil
	}
	leaf := filepath.Join(root, "init")
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	processes, err := os.ReadFile(filepath.Join(root, "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(processes)) {
		err := writeCgroup(leaf, "cgroup.procs", pid)
		if err != nil && !errors.Is(err, syscall.ESRCH) { // it has ended
			return fmt.Errorf("moving process %s to %s: %w", pid, leaf, err)
		}
	}
	for _, name := range strings.Fields(string(controllers)) {
		if err := writeCgroup(root, "cgroup.subtree_control", "+"+name); err != nil {
			return fmt.Errorf("passing the controller %s on: %w", name, err)
		}
	}
	return nil
}

// writeCgroup writes one request to a file of a cgroup. Each request needs its own write.
func writeCgroup(cgroup, file, request string) error {
	f, err := os.OpenFile(filepath.Join(cgroup, file), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(request + "\n")
	return errors.Join(err, f.Close())
}
