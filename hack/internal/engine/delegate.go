package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// delegate makes the cgroup at root one that can have the daemon's containers below
// it: in version 2, a cgroup other than the machine's own root passes controllers on
// only if no process is in it ("no internal process constraint", cgroups(7)). Its
// processes go to a cgroup of their own. That is needed where this host is a container
// itself without an init that sees to it; anywhere else, nothing is changed.
func delegate(root string) error {
	// The machine's root cgroup has no type, and version 1 has no cgroup.controllers.
	if _, err := os.Stat(filepath.Join(root, "cgroup.type")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return err
	}
	passed, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	if len(strings.Fields(string(passed))) == len(strings.Fields(string(controllers))) {
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
		err := control(leaf, "cgroup.procs", pid)
		if err != nil && !errors.Is(err, syscall.ESRCH) { // it has ended
			return fmt.Errorf("moving process %s to %s: %w", pid, leaf, err)
		}
	}
	for _, name := range strings.Fields(string(controllers)) {
		if err := control(root, "cgroup.subtree_control", "+"+name); err != nil {
			return fmt.Errorf("passing the controller %s on: %w", name, err)
		}
	}
	return nil
}

// control writes one request to a file of a cgroup; each is a write of its own.
func control(cgroup, file, request string) error {
	f, err := os.OpenFile(filepath.Join(cgroup, file), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(request + "\n")
	return errors.Join(err, f.Close())
}
