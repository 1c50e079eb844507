package debian

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/run"
)

// Package is a Debian package at one version.
type Package struct {
	Name, Version string
}

func (p Package) String() string { return p.Name + "=" + p.Version }

// ParseLock reads pinned packages, one name=version a line. Blank lines and lines that
// start with # are ignored.
func ParseLock(data []byte) ([]Package, error) {
	var packages []Package
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, version, ok := strings.Cut(line, "=")
		if !ok || name == "" || version == "" || strings.ContainsAny(line, " \t") {
			return nil, fmt.Errorf("package lock, line %d: want name=version, not %q", i+1, line)
		}
		if slices.ContainsFunc(packages, func(p Package) bool { return p.Name == name }) {
			return nil, fmt.Errorf("package lock, line %d: package %s is pinned twice", i+1, name)
		}
		packages = append(packages, Package{Name: name, Version: version})
	}
	return packages, nil
}

// FormatLock writes packages as ParseLock reads them, below the comment.
func FormatLock(comment string, packages []Package) []byte {
	var b bytes.Buffer
	for _, line := range strings.Split(strings.TrimSpace(comment), "\n") {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	for _, p := range packages {
		fmt.Fprintln(&b, p)
	}
	return b.Bytes()
}

// RefreshLock rewrites the lock file, with names and all that they depend on at the
// versions that the archive has now, and says whether that changed it.
func RefreshLock(ctx context.Context, file, comment string, names ...string) (changed bool, err error) {
	packages, err := Resolve(ctx, names...)
	if err != nil {
		return false, err
	}
	lock := FormatLock(comment, packages)
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, lock) {
		return false, nil
	}
	return true, renameio.WriteFile(file, lock, 0o644)
}

// Resolve returns the packages called names and all that they depend on, at the
// versions that the archive has now, in the order in which apt would install them on
// an empty system. Recommended packages are left out.
func Resolve(ctx context.Context, names ...string) ([]Package, error) {
	args := append([]string{
		"--simulate", "--no-install-recommends", "-o", "Dir::State::status=/dev/null", "install",
	}, names...)
	out, err := run.Command(ctx, "apt-get", args...).Env("LC_ALL=C").Output()
	if err != nil {
		return nil, fmt.Errorf("resolving Debian packages %s: %w", strings.Join(names, ", "), err)
	}
	var packages []Package
	for _, line := range strings.Split(out, "\n") {
		// Inst libc6 (2.36-9+deb12u14 Debian:12.15/oldstable [amd64])
		rest, ok := strings.CutPrefix(line, "Inst ")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(rest, " ")
		version, _, found := strings.Cut(strings.TrimPrefix(rest, "("), " ")
		if !found {
			return nil, fmt.Errorf("resolving Debian packages: cannot read apt-get's line %q", line)
		}
		packages = append(packages, Package{Name: name, Version: version})
	}
	return packages, nil
}
