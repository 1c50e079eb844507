// Package doctor checks whether a host can do what podenv needs, before a long build fails on
// it. Each finding has a remedy. The checks change nothing and use no network.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/remedy"
)

// The values of a Finding's Status.
const (
	OK   = "ok"   // as it should be
	Warn = "warn" // podenv fixes it or works around it, or it may become a problem
	Fail = "fail" // podenv cannot work until the remedy is applied
)

// Finding is what one check found.
type Finding struct {
	Check  string `json:"check"`            // what was looked at
	Status string `json:"status"`           // OK, Warn or Fail
	Found  string `json:"found"`            // in a few words
	Remedy string `json:"remedy,omitempty"` // what the user can do; empty for OK
}

func ok(check, format string, args ...any) Finding {
	return Finding{Check: check, Status: OK, Found: fmt.Sprintf(format, args...)}
}

func warn(check, found, advice string) Finding {
	return Finding{Check: check, Status: Warn, Found: found, Remedy: advice}
}

func fail(check, found, advice string) Finding {
	return Finding{Check: check, Status: Fail, Found: found, Remedy: advice}
}

// failed returns a Fail for err, with the remedy of err if it has one, else advice.
func failed(check string, err error, advice string) Finding {
	if host := (*remedy.Error)(nil); errors.As(err, &host) {
		return fail(check, host.Err.Error(), host.Remedy)
	}
	return fail(check, err.Error(), advice)
}

// Failed reports whether one of findings keeps podenv from working. The exit status is 1 then, else 0.
func Failed(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Status == Fail })
}

// WriteTable writes the findings as columns, with each remedy on a line below its finding.
func WriteTable(w io.Writer, findings []Finding) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Status, f.Check, oneLine(f.Found))
		if f.Remedy != "" {
			fmt.Fprintf(t, "\t\t→ %s\n", oneLine(f.Remedy))
		}
	}
	return t.Flush()
}

// WriteTSV writes one finding a line, without a heading: check, status, found, remedy.
func WriteTSV(w io.Writer, findings []Finding) error {
	return jsonout.WriteTSV(w, findings, func(f Finding) []any { return []any{f.Check, f.Status, oneLine(f.Found), oneLine(f.Remedy)} })
}

// oneLine keeps a command's output from breaking the rows.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Examine runs all checks and returns their findings, in the order in which to fix them. It
// takes seconds, because it starts a privileged container and removes it.
func Examine(ctx context.Context, l layout.Layout) []Finding {
	e, engineErr := engine.Find(ctx)
	return slices.Concat(
		[]Finding{docker(ctx, e, engineErr), running(ctx, e), privileged(ctx, l, e), capabilities(), kernel("/proc/sys/kernel/osrelease"), cgroups("/sys/fs/cgroup")},
		disks(places(ctx, l, e)),
		[]Finding{memory("/proc/meminfo")},
		tools(ctx, l),
		[]Finding{packages(ctx), inotify(), iptables(ctx)},
	)
}

// docker checks the engine itself. An engine that does not run is only a warning if `podenv up` can start it.
func docker(ctx context.Context, e *engine.Engine, err error) Finding {
	const check = "container engine"
	switch {
	case err == nil:
		return storage(check, e.Info)
	case !engine.CanStart(err):
		return failed(check, err, "fix what it says")
	case debian.ThisUser().CanInstall(ctx) != nil:
		return fail(check, err.Error(), "as root: `apt-get install docker.io`, or run podenv as root and `podenv up` does it")
	}
	return warn(check, "none serves", "`podenv up` installs and starts Debian's docker.io")
}

// storage checks the storage driver. Drivers other than those listed copy the whole image for
// every container, or were removed from Docker.
func storage(check string, info engine.Info) Finding {
	found := fmt.Sprintf("Docker %s, storage driver %s, in %s", info.ServerVersion, info.Driver, info.DockerRootDir)
	if !slices.Contains([]string{"overlay2", "overlayfs", "btrfs", "zfs", "fuse-overlayfs"}, info.Driver) {
		return warn(check, found, "a node is copied in full with this driver: move Docker's data to a file system that overlay2 works on (ext4, xfs)")
	}
	return ok(check, "%s", found)
}

// running names the kind clusters whose nodes run: Docker starts nodes again with itself, those of a
// killed run included, and they take the host's processors and inotify instances.
func running(ctx context.Context, e *engine.Engine) Finding {
	const check = "running nodes"
	if e == nil {
		return ok(check, "none: no engine serves")
	}
	out, err := e.Docker(ctx, "ps", "--filter", "label=io.x-k8s.kind.cluster", "--format", `{{.Label "io.x-k8s.kind.cluster"}}`).Output()
	switch nodes := strings.Fields(out); {
	case err != nil:
		return failed(check, err, "fix what it says")
	case len(nodes) == 0:
		return ok(check, "none")
	default:
		return ok(check, "%d, of kind's clusters: %s", len(nodes), strings.Join(slices.Compact(slices.Sorted(slices.Values(nodes))), ", "))
	}
}

func privileged(ctx context.Context, l layout.Layout, e *engine.Engine) Finding {
	const check = "privileged containers"
	if e == nil {
		return warn(check, "not tried, because no engine serves", "`podenv up` starts one and tries")
	}
	if err := e.Privileged(ctx, l); err != nil {
		return failed(check, err, "fix what it says")
	}
	return ok(check, "run, and run privileged processes")
}

// requiredCapabilities are those that a node needs to start: its systemd and containerd mount
// file systems, and create devices and networks.
var requiredCapabilities = []string{"CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_CHROOT", "CAP_MKNOD", "CAP_SYS_PTRACE"}

func capabilities() Finding {
	missing, err := engine.MissingCapabilities()
	if err != nil {
		return fail("capabilities", err.Error(), "mount /proc, and run podenv on Linux")
	}
	return judgeCapabilities(missing)
}

func judgeCapabilities(missing []string) Finding {
	const check = "capabilities"
	if len(missing) == 0 {
		return ok(check, "all can be granted")
	}
	vital := slices.DeleteFunc(slices.Clone(missing), func(c string) bool { return !slices.Contains(requiredCapabilities, c) })
	if len(vital) > 0 {
		return fail(check, "the bounding set lacks "+strings.Join(vital, ", "), "start this machine or container with them: nodes cannot do without")
	}
	return ok(check, "the bounding set lacks %s; podenv copes", strings.Join(missing, ", "))
}
