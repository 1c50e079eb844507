package debian

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"podenv.dev/hack/internal/layout"
)

// requested are the Debian packages that images are made from. Their dependencies come with
// them, and the lock file pins both.
var requested = []string{
	// what runs services
	"systemd",
	// what the kubelet, kube-proxy and podnet call
	"conntrack", "ethtool", "ipset", "iproute2", "iptables", "kmod", "mount", "nftables", "util-linux",
	// the container runtime's network plugins
	"containernetworking-plugins",
	// volumes of pods
	"e2fsprogs",
	// what kind's own scripts call, and what a person looks for in a node
	"bash", "ca-certificates", "curl", "jq", "procps",
	// the shell of test images
	"busybox-static",
}

// suite is the Debian release that images are made of. Its systemd, 252, still runs
// on cgroup v1 hosts. Updates come with point releases only, so that a pinned version
// stays on the mirrors, which the security suite does not promise.
const suite = "bookworm"

// pins are the versions of packages, by name.
type pins map[string]string

// Set is a root file system of packages, with a lock file of its own.
type Set struct {
	lock     string // what the name of the lock file begins with
	packages []string
	options  []string // more options of mmdebstrap
}

var (
	// Nodes is what nodes and podenv's own test images are made from.
	Nodes = Set{lock: "packages", packages: requested}
	// Specs is what the images of a release's own specs are made from. It has no devices, as runtimes make
	// these, and the commands of busybox in /busybox.
	Specs = Set{
		lock: "spec-packages",
		packages: []string{"apache2-bin", "bash", "bind9-dnsutils", "bsdextrautils", "busybox-static", "ca-certificates", "curl",
			"iperf", "iproute2", "netcat-openbsd", "nginx", "perl", "redis-server", "stress"},
		options: []string{"--skip=output/dev", `--customize-hook=mkdir "$1/busybox" && chroot "$1" busybox --install -s /busybox`},
	}
)

// lockFile returns the path of the lock file for this machine's architecture: a package may
// have different versions on two architectures.
func (s Set) lockFile(l layout.Layout) string {
	return filepath.Join(l.Root, "hack/internal/debian", s.lock+"-"+runtime.GOARCH+".lock")
}

// readPins reads the lock file, which must pin at least the packages called names.
func readPins(file string, names []string) (pins, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no Debian packages are pinned for %s: write %s with `%s`", runtime.GOARCH, file, refreshCommand)
	}
	if err != nil {
		return nil, err
	}
	p, err := parsePins(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, name := range names {
		if p[name] == "" {
			return nil, fmt.Errorf("%s: package %s is not pinned: run `%s`", file, name, refreshCommand)
		}
	}
	return p, nil
}

// parsePins parses lines of name=version. It ignores blank lines and lines that start with #.
func parsePins(text string) (pins, error) {
	p := pins{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, version, _ := strings.Cut(line, "=")
		if name == "" || version == "" || strings.ContainsAny(line, " \t") {
			return nil, fmt.Errorf("line %d: want name=version, not %q", i+1, line)
		}
		if p[name] != "" {
			return nil, fmt.Errorf("line %d: package %s is pinned twice", i+1, name)
		}
		p[name] = version
	}
	return p, nil
}

// String is the lock file's text.
func (p pins) String() string {
	lines := fmt.Sprintf("# Debian %s packages that images are made from. Written by `%s`.\n", suite, refreshCommand)
	for _, name := range slices.Sorted(maps.Keys(p)) {
		lines += name + "=" + p[name] + "\n"
	}
	return lines
}

// Pinned returns packages, or all if none are named, as name=version, with their versions in the
// root file system. A package that the lock file lacks is an error.
func Pinned(l layout.Layout, packages ...string) ([]string, error) {
	p, err := readPins(Nodes.lockFile(l), packages)
	if len(packages) == 0 {
		packages = slices.Sorted(maps.Keys(p))
	}
	return p.versioned(packages), err
}

// versioned returns names as name=version, which is how apt takes them.
func (p pins) versioned(names []string) []string {
	pinned := make([]string, len(names))
	for i, name := range names {
		pinned[i] = name + "=" + p[name]
	}
	return pinned
}

// changes lists how the versions of now differ from those of p, as NAME OLD -> NEW.
func (p pins) changes(now pins) []string {
	all := maps.Clone(p)
	maps.Copy(all, now)
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if p[name] != now[name] {
			changes = append(changes, fmt.Sprintf("%s %s -> %s", name, cmp.Or(p[name], "none"), cmp.Or(now[name], "none")))
		}
	}
	return changes
}

func movedError(moved []string) error {
	if len(moved) == 0 {
		return nil
	}
	return fmt.Errorf("pinned Debian packages are gone from the mirrors: %s; pin what there is now with `%s`, and commit the lock file", strings.Join(moved, ", "), refreshCommand)
}

// refreshCommand is the command that calls RefreshPackages.
const refreshCommand = "go run ./hack/podenv image --refresh-packages"
