package nodeimage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// excluded are paths that dpkg does not unpack: a node needs no documentation.
var excluded = []string{
	"/usr/share/doc/*", "/usr/share/info/*", "/usr/share/lintian/*", "/usr/share/locale/*", "/usr/share/man/*",
}

// rootFS returns the tar of the root file system with the packages of the lock file,
// made by mmdebstrap, or from the cache.
func rootFS(ctx context.Context, l layout.Layout, step *progress.Step) (string, error) {
	p, err := readPins(lockFile(l))
	if err != nil {
		return "", err
	}
	unlock, err := lockFolder(ctx, l.Cache("rootfs"), step)
	if err != nil {
		return "", err
	}
	defer unlock()
	file := rootFSFile(l, p)
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	step.Now("installing %d Debian packages", len(p))
	return file, debootstrap(ctx, p.include(), file, step, p.compare)
}

// rootFSFile is where the root file system with the packages of p is kept.
func rootFSFile(l layout.Layout, p pins) string {
	key := keyOf(suite, runtime.GOARCH, p.String(), strings.Join(p.include(), ","), strings.Join(excluded, ","))
	return filepath.Join(l.Cache("rootfs"), key+".tar")
}

// include are the requested packages with their versions, as apt is asked for them.
func (p pins) include() []string {
	include := make([]string, len(requested))
	for i, name := range requested {
		include[i] = name + "=" + p[name]
	}
	return include
}

// RefreshPackages pins the versions that the mirrors have now, in the lock file of
// this machine's architecture, and says what changed.
func RefreshPackages(ctx context.Context, l layout.Layout, step *progress.Step) (changes []string, err error) {
	old, err := readPins(lockFile(l))
	if err != nil {
		old = pins{} // missing or broken: it is rewritten
	}
	unlock, err := lockFolder(ctx, l.Cache("rootfs"), step)
	if err != nil {
		return nil, err
	}
	defer unlock()
	scratch := filepath.Join(l.Cache("rootfs"), "refresh.tar")
	defer os.Remove(scratch)
	var found pins
	step.Now("installing what the mirrors have")
	if err := debootstrap(ctx, requested, scratch, step, func(installed pins) error { found = installed; return nil }); err != nil {
		return nil, err
	}
	for _, name := range differing(old, found) {
		changes = append(changes, fmt.Sprintf("%s %s -> %s", name, cmp.Or(old[name], "none"), cmp.Or(found[name], "none")))
	}
	return changes, renameio.WriteFile(lockFile(l), []byte(found.String()), 0o644)
}

// debootstrap writes the tar of a root file system with packages to out, once accept
// agrees to the versions in it.
func debootstrap(ctx context.Context, packages []string, out string, step *progress.Step, accept func(pins) error) error {
	scratch, err := os.MkdirTemp(filepath.Dir(out), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	sources, err := aptSources(ctx, filepath.Join(scratch, "lists"))
	if err != nil {
		return err
	}
	proxies, err := aptProxies(ctx)
	if err != nil {
		return err
	}
	args := []string{
		"--variant=apt", "--include=" + strings.Join(packages, ","),
		`--aptopt=APT::Install-Recommends "false"`,
		"--customize-hook=download /var/lib/dpkg/status " + filepath.Join(scratch, "status"),
	}
	for _, path := range excluded {
		args = append(args, "--dpkgopt=path-exclude="+path)
	}
	for _, proxy := range proxies {
		args = append(args, "--aptopt="+proxy)
	}
	beside := filepath.Join(scratch, "rootfs.tar")
	err = run.Command(ctx, "mmdebstrap", append(args, suite, beside, "-")...).Stdin(strings.NewReader(sources)).Log(step.Log()).Run()
	if err != nil {
		return explainApt(err)
	}
	list, err := run.Command(ctx, "dpkg-query", "--admindir="+scratch, "--show", "--showformat=${Package}=${Version}\n").Output()
	if err != nil {
		return fmt.Errorf("reading which packages were installed: %w", err)
	}
	installed, err := parsePins(list)
	if err != nil {
		return err
	}
	if err := accept(installed); err != nil {
		return err
	}
	return os.Rename(beside, out)
}

// notFound is what apt says of a version that the mirrors do not have.
var notFound = regexp.MustCompile(`Version '([^']+)' for '([^']+)' was not found`)

// explainApt turns a failure of mmdebstrap into one that says what to do.
func explainApt(err error) error {
	var failed *run.Error
	if !errors.As(err, &failed) {
		return err
	}
	var moved []string
	for _, m := range notFound.FindAllStringSubmatch(failed.Tail, -1) {
		moved = append(moved, m[2]+"="+m[1])
	}
	if len(moved) > 0 {
		return movedError(moved)
	}
	return fmt.Errorf("installing the node image's Debian packages: %w\n  check that `apt-get update` works on this machine: its mirrors are used", err)
}
