package engine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// ErrPackages is in the chain of an error where Debian packages could not be installed.
var ErrPackages = errors.New("missing packages")

// installing keeps two steps of this process from waiting for each other's apt.
var installing sync.Mutex

// EnsurePackages installs those of the Debian packages called names that are not
// installed, as root or with sudo. It costs one dpkg-query where nothing is missing.
// An error has ErrPackages in its chain and ends in the command that a person can
// run instead.
func EnsurePackages(ctx context.Context, step *progress.Step, names ...string) error {
	return thisHost().ensurePackages(ctx, step, names)
}

// CanInstall returns why EnsurePackages cannot install anything on this host, or nil.
func CanInstall(ctx context.Context) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("this is not Debian: there is no apt-get")
	}
	return thisHost().mayInstall(ctx)
}

func (h *host) ensurePackages(ctx context.Context, step *progress.Step, names []string) error {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return &HostError{
			fmt.Errorf("%w: this is not Debian: there is no dpkg-query", ErrPackages),
			"install what your distribution has for " + strings.Join(names, " "),
		}
	}
	installing.Lock()
	defer installing.Unlock()
	missing := missingPackages(ctx, names)
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	if err := h.mayInstall(ctx); err != nil {
		return &HostError{
			fmt.Errorf("%w: %s: %w", ErrPackages, list, err),
			"run `apt-get install --no-install-recommends " + list + "` as root",
		}
	}
	step.Now("installing %s", list)
	err := h.apt(ctx, step, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...)
	if err != nil && staleLists(err) {
		step.Now("updating the package lists for %s", list)
		if err = h.apt(ctx, step, "update"); err == nil {
			step.Now("installing %s", list)
			err = h.apt(ctx, step, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...)
		}
	}
	if err != nil {
		return &HostError{fmt.Errorf("%w: %s: %w", ErrPackages, list, err), aptRemedy(err.Error())}
	}
	return nil
}

// missingPackages are those of names that dpkg does not have installed.
func missingPackages(ctx context.Context, names []string) []string {
	// dpkg-query fails where it does not know one of the names; what it prints of
	// the others still holds.
	args := append([]string{"--show", "--showformat", "${Package} ${db:Status-Status}\n", "--"}, names...)
	out, _ := run.Command(ctx, "dpkg-query", args...).Output()
	installed := map[string]bool{}
	for line := range strings.Lines(out) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), " installed"); ok {
			installed[name] = true
		}
	}
	var missing []string
	for _, name := range names {
		if !installed[name] {
			missing = append(missing, name)
		}
	}
	return missing
}

func (h *host) mayInstall(ctx context.Context) error {
	if h.uid == 0 {
		return nil
	}
	if _, err := exec.LookPath("sudo"); err != nil {
		return errors.New("not root, and there is no sudo")
	}
	if err := run.Command(ctx, "sudo", "-n", "true").Run(); err != nil {
		return errors.New("not root, and sudo asks for a password")
	}
	return nil
}

// apt runs apt-get, and again for as long as another one holds the lock.
func (h *host) apt(ctx context.Context, step *progress.Step, args ...string) error {
	deadline, cancel := context.WithTimeout(ctx, h.lockTimeout)
	defer cancel()
	tick := time.NewTicker(h.lockPoll)
	defer tick.Stop()
	// Without systemd, a package's services are not started in runlevel 1: dockerd is
	// for start to start, which knows the flags.
	command := h.asRoot(append([]string{"env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "RUNLEVEL=1", "apt-get", "--quiet"}, args...)...)
	for {
		err := run.Command(ctx, command[0], command[1:]...).Log(step.Log()).Run()
		if err == nil || !strings.Contains(err.Error(), "Could not get lock") {
			return err
		}
		step.Now("waiting for another apt to end")
		select {
		case <-deadline.Done():
			return err
		case <-tick.C:
		}
	}
}

// staleLists reports whether apt failed for want of a look at the archive.
func staleLists(err error) bool {
	return containsAny(err.Error(), "Unable to locate package", "has no installation candidate", "404  Not Found", "Unable to fetch some archives")
}

// aptRemedy is what to do about what apt said.
func aptRemedy(said string) string {
	switch {
	case containsAny(said, "Could not get lock"):
		return "another apt is at work: wait for it, or see what holds the lock, and try again"
	case containsAny(said, "Unable to locate package", "has no installation candidate"):
		return "this distribution's archive does not have it: see /etc/apt/sources.list and /etc/apt/sources.list.d"
	case containsAny(said, "Could not resolve", "Temporary failure", "Could not connect", "Failed to fetch", "Unable to fetch", "Unable to connect"):
		return "the package archive is out of reach: check the network, or install the packages in another way"
	case containsAny(said, "dpkg was interrupted"):
		return "an earlier installation was cut short: run `dpkg --configure -a` as root, and try again"
	case containsAny(said, "o space left", "enough free space"):
		return "the disk is full: free some space, for example with `apt-get clean`, and try again"
	}
	return "run the command by hand to see more"
}

func containsAny(s string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
