// Command podenv-oci-runtime becomes runc, after it has removed the capabilities that this
// host cannot grant from what runc is asked for. podenv makes it dockerd's default runtime
// on a host whose capability bounding set is short, as in many CI sandboxes.
//
//	dockerd ─► containerd-shim ─► podenv-oci-runtime ─► runc
//	                              (config.json, process.json)
//
// Docker 20.10 gives a privileged container all capabilities that the kernel knows, and
// runc fails on those that the bounding set lacks. Newer engines give it those that dockerd
// has. So this command can go when podenv no longer installs the docker.io of Debian 12.
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

// requestFile returns the file in which the arguments name capabilities: config.json of a
// bundle to create, or the process.json of an exec, which isProcess tells apart. All other
// commands have none. containerd's shim writes these flags as two arguments each.
func requestFile(args []string) (path string, isProcess bool) {
	if at := slices.Index(args, "--bundle"); at >= 0 && at+1 < len(args) {
		return filepath.Join(args[at+1], "config.json"), false
	}
	if at := slices.Index(args, "--process"); at >= 0 && at+1 < len(args) {
		return args[at+1], true
	}
	return "", false
}

// rewrite removes what granted refuses from each of a process's capability sets (OCI runtime
// specification, "process.capabilities"). All else in the file stays, numbers as they are
// written. So does its mode, since it has the environment of a container.
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

// granted reports whether the bounding set has a capability, such as "CAP_KILL". One that
// is not known here is not granted.
func granted(name any) bool {
	for _, c := range capability.ListKnown() {
		if name == "CAP_"+strings.ToUpper(c.String()) {
			bound, err := capability.GetBound(c)
			return err == nil && bound
		}
	}
	return false
}
