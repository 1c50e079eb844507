package nodeimage

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/layout"
)

// requested are the Debian packages that the node image is for; what they depend on
// comes with them, and the lock file pins both.
var requested = []string{
	// what runs services
	"systemd",
	// what the kubelet, kube-proxy and podnet call
	"conntrack", "ethtool", "iproute2", "iptables", "kmod", "mount", "nftables", "util-linux",
	// the container runtime's network plugins
	"containernetworking-plugins",
	// volumes of pods
	"e2fsprogs",
	// what kind's own scripts call, and what a person looks for in a node
	"bash", "ca-certificates", "curl", "jq", "procps",
}

// suite is the Debian release that the image is made of. Its systemd, 252, still runs
// on cgroup v1 hosts. Updates come with point releases only, so that a pinned version
// stays on the mirrors, which the security suite does not promise.
const suite = "bookworm"

// ErrPackagesMoved is in the chain of Base's error when the mirrors no longer have
// the versions that the lock file pins.
var ErrPackagesMoved = errors.New("pinned Debian packages are gone from the mirrors")

// pins are the versions of packages, by name.
type pins map[string]string

// lockFile is where the pinned versions for this machine's architecture are: builds
// of one source for two architectures may have different versions.
func lockFile(l layout.Layout) string {
	return filepath.Join(l.Root, "hack/internal/nodeimage", "packages-"+runtime.GOARCH+".lock")
}

// readPins reads the lock file, which must pin at least the requested packages.
func readPins(file string) (pins, error) {
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
	for _, name := range requested {
		if p[name] == "" {
			return nil, fmt.Errorf("%s: package %s is not pinned: run `%s`", file, name, refreshCommand)
		}
	}
	return p, nil
}

func parsePins(text string) (pins, error) {
	packages, err := debian.ParseLock([]byte(text))
	p := pins{}
	for _, pkg := range packages {
		p[pkg.Name] = pkg.Version
	}
	return p, err
}

// String is the lock file's text.
func (p pins) String() string {
	var packages []debian.Package
	for _, name := range slices.Sorted(maps.Keys(p)) {
		packages = append(packages, debian.Package{Name: name, Version: p[name]})
	}
	comment := fmt.Sprintf("Debian %s packages of the node image. Written by `%s`.", suite, refreshCommand)
	return string(debian.FormatLock(comment, packages))
}

// compare says how what was installed differs from the lock.
func (p pins) compare(installed pins) error {
	var moved []string
	for _, name := range differing(p, installed) {
		switch want, have := p[name], installed[name]; {
		case have == "":
			moved = append(moved, fmt.Sprintf("%s=%s (no longer installed)", name, want))
		case want == "":
			moved = append(moved, fmt.Sprintf("%s=%s (not pinned)", name, have))
		default:
			moved = append(moved, fmt.Sprintf("%s=%s (mirror has %s)", name, want, have))
		}
	}
	return movedError(moved)
}

// differing names the packages whose versions a and b do not agree on, or that only one has.
func differing(a, b pins) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	maps.DeleteFunc(all, func(name, _ string) bool { return a[name] == b[name] })
	return slices.Sorted(maps.Keys(all))
}

func movedError(moved []string) error {
	if len(moved) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; pin what there is now with `%s`, and commit the lock file", ErrPackagesMoved, strings.Join(moved, ", "), refreshCommand)
}

// refreshCommand is what a person types for RefreshPackages.
const refreshCommand = "go run ./hack/podenv image --refresh-packages"
