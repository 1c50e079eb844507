// Package debian installs Debian packages on this host, and builds one root file system of packages at pinned
// versions, from which images are made. apt verifies downloads with the archive's signatures.
//
//	packages-<arch>.lock ─► RootFS ─┬─► the node image
//	                                └─► Files ─► kube-proxy's image, the test images
package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// dpkgOptions leave out documentation, except for the licenses of the files.
var dpkgOptions = []string{
	"path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright",
	"path-exclude=/usr/share/info/*", "path-exclude=/usr/share/lintian/*",
	"path-exclude=/usr/share/locale/*", "path-exclude=/usr/share/man/*",
}

// sourceDate makes the root file system the same at any time: mmdebstrap dates its files with it,
// and useradd the passwords of system accounts. It is a day after the epoch, because 0 in
// shadow(5) asks for a new password.
const sourceDate = "SOURCE_DATE_EPOCH=86400"

// RootFS returns the tar of the root file system with the packages of the lock file, from the cache or from
// mmdebstrap. The error says what to do when the mirrors no longer have these packages.
func (s Set) RootFS(ctx context.Context, l layout.Layout, step *progress.Step) (string, error) {
	p, err := readPins(s.lockFile(l), s.packages)
	if err != nil {
		return "", err
	}
	key := digest.Of(suite, runtime.GOARCH, p.String(), strings.Join(s.packages, ","), strings.Join(slices.Concat(dpkgOptions, s.options), ","), sourceDate)
	return cached(ctx, l, key, step, func(scratch string) (string, error) {
		step.Now("installing %d Debian packages", len(p))
		tar, installed, err := debootstrap(ctx, p.versioned(s.packages), s.options, scratch, step)
		if err == nil {
			err = movedError(p.changes(installed))
		}
		return tar, err
	})
}

// cached returns the tar called key in the cache. If there is none, write writes it in the empty
// directory scratch.
func cached(ctx context.Context, l layout.Layout, key string, step *progress.Step, write func(scratch string) (tar string, err error)) (string, error) {
	scratch, done, err := lockScratch(ctx, l, step)
	if err != nil {
		return "", err
	}
	defer done()
	file := filepath.Join(l.Cache("rootfs"), key[:12]+".tar")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	tar, err := write(scratch)
	if err != nil {
		return "", err
	}
	return file, os.Rename(tar, file)
}

// RefreshPackages pins the versions that the mirrors have now, in the lock file of
// this machine's architecture, and says what changed.
func (s Set) RefreshPackages(ctx context.Context, l layout.Layout, step *progress.Step) (changes []string, err error) {
	old, err := readPins(s.lockFile(l), nil)
	if err != nil {
		old = pins{} // missing or broken: it is rewritten
	}
	scratch, done, err := lockScratch(ctx, l, step)
	if err != nil {
		return nil, err
	}
	defer done()
	step.Now("installing what the mirrors have")
	_, found, err := debootstrap(ctx, s.packages, s.options, scratch, step)
	if err != nil {
		return nil, err
	}
	return old.changes(found), renameio.WriteFile(s.lockFile(l), []byte(found.String()), 0o644)
}

// rootFSMutex makes the steps of this process take turns. A step that waits for the lock file says
// that it waits for another process.
var rootFSMutex sync.Mutex

// lockScratch returns an empty directory next to the root file systems. It belongs to this step
// until done is called, so that two commands do not build the same root file system at once.
func lockScratch(ctx context.Context, l layout.Layout, step *progress.Step) (scratch string, done func(), err error) {
	if !rootFSMutex.TryLock() {
		step.Now("waiting for another step that installs the Debian packages")
		rootFSMutex.Lock()
	}
	dir := l.Cache("rootfs")
	unlock, err := lockfile.Lock(ctx, filepath.Join(dir, "lock"), "that works in "+dir, step)
	if err != nil {
		rootFSMutex.Unlock()
		return "", nil, err
	}
	scratch = filepath.Join(dir, "new")
	done = func() {
		os.RemoveAll(scratch)
		unlock()
		rootFSMutex.Unlock()
	}
	// A killed process may have left it.
	if err := errors.Join(os.RemoveAll(scratch), os.Mkdir(scratch, 0o755)); err != nil {
		done()
		return "", nil, err
	}
	return scratch, done, nil
}

// extracted returns the tar of packages of another architecture with their files, none of which
// has run. Their versions are those that the lock file pins for this machine's: Debian's mirrors
// have the same on all, and apt says so if not.
func extracted(ctx context.Context, l layout.Layout, arch string, packages []string, step *progress.Step) (string, error) {
	pinned, err := Pinned(l, packages...)
	if err != nil {
		return "", err
	}
	return cached(ctx, l, digest.Of(append(pinned, suite, arch, sourceDate)...), step, func(scratch string) (string, error) {
		step.Now("downloading %d Debian packages for %s", len(pinned), arch)
		return mmdebstrap(ctx, pinned, scratch, step, "--variant=extract", "--architectures="+arch)
	})
}

// debootstrap builds the tar of a root file system with packages in the directory scratch, and
// returns the versions that it has.
func debootstrap(ctx context.Context, packages, options []string, scratch string, step *progress.Step) (tar string, installed pins, err error) {
	args := append(slices.Clone(options), "--variant=apt", "--customize-hook=download /var/lib/dpkg/status "+filepath.Join(scratch, "status"))
	for _, option := range dpkgOptions {
		args = append(args, "--dpkgopt="+option)
	}
	if tar, err = mmdebstrap(ctx, packages, scratch, step, args...); err != nil {
		return "", nil, err
	}
	list, err := run.Command(ctx, "dpkg-query", "--admindir="+scratch, "--show", "--showformat=${Package}=${Version}\n").Output()
	if err != nil {
		return "", nil, fmt.Errorf("reading which packages were installed: %w", err)
	}
	installed, err = parsePins(list)
	return tar, installed, err
}

// mmdebstrap writes a tar with packages to the directory scratch.
func mmdebstrap(ctx context.Context, packages []string, scratch string, step *progress.Step, args ...string) (tar string, err error) {
	// `podenv build` and `podenv push` do not install packages before this.
	if err := ThisUser().EnsureInstalled(ctx, step, "mmdebstrap"); err != nil {
		return "", err
	}
	sources, err := aptSources(ctx, filepath.Join(scratch, "lists"))
	if err != nil {
		return "", err
	}
	proxies, err := aptProxies(ctx)
	if err != nil {
		return "", err
	}
	args = append(args, "--include="+strings.Join(packages, ","), `--aptopt=APT::Install-Recommends "false"`)
	for _, proxy := range proxies {
		args = append(args, "--aptopt="+proxy)
	}
	tar = filepath.Join(scratch, "rootfs.tar")
	return tar, explainApt(run.Command(ctx, "mmdebstrap", append(args, suite, tar, "-")...).
		Env(sourceDate).Stdin(strings.NewReader(sources)).Log(step.Log()).Run())
}

// versionNotFound matches apt's error for a version that the mirrors do not have.
var versionNotFound = regexp.MustCompile(`Version '([^']+)' for '([^']+)' was not found`)

// explainApt turns a failure of mmdebstrap into one that says what to do.
func explainApt(err error) error {
	var failed *run.Error
	if !errors.As(err, &failed) {
		return err
	}
	var moved []string
	for _, m := range versionNotFound.FindAllStringSubmatch(failed.Tail, -1) {
		moved = append(moved, m[2]+"="+m[1])
	}
	if len(moved) > 0 {
		return movedError(moved)
	}
	return fmt.Errorf("installing Debian packages: %w\n  check that `apt-get update` works on this machine: its mirrors are used", err)
}

// aptSources returns a sources list with the mirrors of the suite that this machine's apt
// uses. If the machine has no package lists, they are downloaded to the directory scratch.
func aptSources(ctx context.Context, scratch string) (string, error) {
	sources, err := listSources(ctx)
	if err != nil || sources != "" {
		return sources, err
	}
	lists := []string{"-o", "Dir::State::lists=" + scratch}
	if err := run.Command(ctx, "apt-get", append(lists, "update")...).Run(); err != nil {
		return "", fmt.Errorf("reading the lists of Debian's packages: %w", err)
	}
	sources, err = listSources(ctx, lists...)
	if err == nil && sources == "" {
		err = fmt.Errorf("this machine's apt has no mirror of Debian %s: add one to /etc/apt/sources.list.d", suite)
	}
	return sources, err
}

// listSources asks apt for its mirrors. apt knows only those whose lists it has downloaded.
func listSources(ctx context.Context, options ...string) (string, error) {
	args := append(options[:len(options):len(options)], "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
	out, err := run.Command(ctx, "apt-get", args...).Output()
	if err != nil {
		return "", fmt.Errorf("reading which mirrors apt uses: %w", err)
	}
	return suiteSources(out), nil
}

// suiteSources picks the suite's main component from lines of URI, release and component.
func suiteSources(targets string) string {
	var lines []string
	for target := range strings.Lines(targets) {
		f := strings.Fields(target)
		if len(f) != 3 || f[1] != suite || f[2] != "main" {
			continue
		}
		line := fmt.Sprintf("deb %s %s main\n", f[0], suite)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// aptProxies returns the proxy settings of this machine's apt, in the syntax of apt.conf(5).
// mmdebstrap does not read them.
func aptProxies(ctx context.Context) ([]string, error) {
	out, err := run.Command(ctx, "apt-config", "dump", "--no-empty", "--format", `%f "%v";%n`, "Acquire::http::Proxy", "Acquire::https::Proxy").Output()
	if err != nil {
		return nil, fmt.Errorf("reading apt's proxy: %w", err)
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' }), nil
}
