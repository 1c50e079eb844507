// Command podenv-oci-runtime removes the capabilities that this host cannot grant from a request
// to runc, and executes runc. podenv makes it dockerd's default runtime on a host whose
// capability bounding set lacks some, as in many CI sandboxes.
//
//	dockerd ─► containerd-shim ─► podenv-oci-runtime ─► runc
//	                              (config.json, process.json)
//
// Docker 20.10 gives a privileged container all capabilities that the kernel knows, and runc
// fails on those that the bounding set lacks. Newer engines give it those that dockerd has. So
// remove this command when podenv no longer installs the docker.io of Debian 12.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
	"github.com/moby/sys/capability"
)

func main() {
	err := execRunc(os.Args[1:])
	fmt.Fprintf(os.Stderr, "podenv-oci-runtime: %v\n", err) // containerd shows it
	os.Exit(1)
}

// execRunc replaces this process by runc with the same arguments. It returns only errors.
func execRunc(args []string) error {
	if path, isProcess := requestFile(args); path != "" {
		if err := rewrite(path, isProcess); err != nil {
			return fmt.Errorf("removing capabilities that this host cannot grant: %w", err)
		}
	}
	path, err := exec.LookPath("runc")
	if err != nil {
		return fmt.Errorf("%w; install runc", err)
	}
	return fmt.Errorf("executing %s: %w", path, syscall.Exec(path, append([]string{"runc"}, args...), os.Environ()))
}

// requestFile returns the file with the capabilities of a request: the config.json of a bundle to
// create, or the process.json of an exec, for which isProcess is true. Other commands have none.
// containerd's shim passes these flags as two arguments each.
func requestFile(args []string) (path string, isProcess bool) {
	if at := slices.Index(args, "--bundle"); at >= 0 && at+1 < len(args) {
		return filepath.Join(args[at+1], "config.json"), false
	}
	if at := slices.Index(args, "--process"); at >= 0 && at+1 < len(args) {
		return args[at+1], true
	}
	return "", false
}

// rewrite removes the capabilities that are not granted from each capability set of a process
// (OCI runtime specification, "process.capabilities"). Everything else in the file stays,
// including the format of numbers. Its mode stays, because it has a container's environment.
func rewrite(path string, isProcess bool) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var file map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	process := file
	if !isProcess {
		process, _ = file["process"].(map[string]any)
	}
	sets, _ := process["capabilities"].(map[string]any)
	for name, set := range sets {
		if list, ok := set.([]any); ok {
			sets[name] = slices.DeleteFunc(list, func(capability any) bool { return !granted(capability) })
		}
	}
	if data, err = json.Marshal(file); err != nil {
		return err
	}
	return renameio.WriteFile(path, data, 0o600, renameio.WithExistingPermissions())
}

// granted reports whether the bounding set has a capability, such as "CAP_KILL". Unknown
// capabilities are not granted.
func granted(name any) bool {
	for _, c := range capability.ListKnown() {
		if name == "CAP_"+strings.ToUpper(c.String()) {
			bound, err := capability.GetBound(c)
			return err == nil && bound
		}
	}
	return false
}
