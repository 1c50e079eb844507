package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/run"
)

// installing keeps the steps of this process from waiting for each other's apt lock.
var installing sync.Mutex

// Installer installs packages on this host as the user UID, with sudo where that is not root.
type Installer struct {
	UID         int
	LockTimeout time.Duration // how long another apt may hold its lock
	LockPoll    time.Duration // how often to try apt until then
}

// ThisUser returns an Installer for the user of this process. It waits some minutes for another
// apt, because a fresh machine upgrades its packages at first.
func ThisUser() Installer {
	return Installer{UID: os.Geteuid(), LockTimeout: 5 * time.Minute, LockPoll: 2 * time.Second}
}

// CanInstall returns why EnsureInstalled cannot install anything on this host, or nil.
func (i Installer) CanInstall(ctx context.Context) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("this is not Debian: there is no apt-get")
	}
	return i.mayInstall(ctx)
}

// EnsureInstalled installs the packages that are missing. If none is, it only runs one
// dpkg-query. Errors end with what the user can do instead.
func (i Installer) EnsureInstalled(ctx context.Context, step *progress.Step, names ...string) error {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return remedy.New(
			errors.New("missing packages: this is not Debian: there is no dpkg-query"),
			"install what your distribution has for "+strings.Join(names, " "),
		)
	}
	installing.Lock()
	defer installing.Unlock()
	missing := missingPackages(ctx, names)
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	if err := i.mayInstall(ctx); err != nil {
		return remedy.New(
			fmt.Errorf("missing packages: %s: %w", list, err),
			"run `apt-get install --no-install-recommends "+list+"` as root",
		)
	}
	install := func() error {
		step.Now("installing %s", list)
		return i.apt(ctx, step, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...)
	}
	err := install()
	// The package lists are missing or outdated.
	if err != nil && remedy.ContainsAny(err.Error(), "Unable to locate package", "has no installation candidate", "404  Not Found", "Unable to fetch some archives") {
		step.Now("updating the package lists for %s", list)
		if err = i.apt(ctx, step, "update"); err == nil {
			err = install()
		}
	}
	if err != nil {
		return remedy.New(fmt.Errorf("missing packages: %s: %w", list, err), aptRemedy(err.Error()))
	}
	return nil
}

// missingPackages returns those of names that are not installed.
func missingPackages(ctx context.Context, names []string) []string {
	// dpkg-query fails if it does not know one of the names, but prints the others.
	args := append([]string{"--show", "--showformat", "${Package} ${db:Status-Status}\n", "--"}, names...)
	out, _ := run.Command(ctx, "dpkg-query", args...).Output()
	installed := sets.New[string]()
	for line := range strings.Lines(out) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), " installed"); ok {
			installed.Insert(name)
		}
	}
	return slices.DeleteFunc(slices.Clone(names), installed.Has)
}

func (i Installer) mayInstall(ctx context.Context) error {
	if i.UID == 0 {
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

// apt runs apt-get, and tries again while another apt holds the lock.
func (i Installer) apt(ctx context.Context, step *progress.Step, args ...string) error {
	deadline, cancel := context.WithTimeout(ctx, i.LockTimeout)
	defer cancel()
	tick := time.NewTicker(i.LockPoll)
	defer tick.Stop()
	// Without systemd, packages do not start their services in runlevel 1: package engine
	// starts dockerd, with the right flags.
	command := AsRoot(i.UID, append([]string{"env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "RUNLEVEL=1", "apt-get", "--quiet"}, args...)...)
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

// aptRemedy returns what to do about an error that apt printed.
func aptRemedy(output string) string {
	switch {
	case remedy.ContainsAny(output, "Could not get lock"):
		return "another apt is at work: wait for it, or see what holds the lock, and try again"
	case remedy.ContainsAny(output, "Unable to locate package", "has no installation candidate"):
		return "this distribution's archive does not have it: see /etc/apt/sources.list and /etc/apt/sources.list.d"
	case remedy.ContainsAny(output, "Could not resolve", "Temporary failure", "Could not connect", "Failed to fetch", "Unable to fetch", "Unable to connect"):
		return "the package archive is out of reach: check the network, or install the packages in another way"
	case remedy.ContainsAny(output, "dpkg was interrupted"):
		return "an earlier installation was cut short: run `dpkg --configure -a` as root, and try again"
	case remedy.ContainsAny(output, "o space left", "enough free space"):
		return "the disk is full: free some space, for example with `apt-get clean`, and try again"
	}
	return "run the command by hand to see more"
}

// AsRoot returns the command line args, preceded by sudo unless the user uid is root.
func AsRoot(uid int, args ...string) []string {
	if uid == 0 {
		return args
	}
	return append([]string{"sudo", "-n"}, args...)
}
