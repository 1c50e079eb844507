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

	"podenv.dev/hack/internal/engine"
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

// Failed reports whether one of findings keeps podenv from working. The exit status is 1 then,
// else 0.
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
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Check, f.Status, oneLine(f.Found), oneLine(f.Remedy)); err != nil {
			return err
		}
	}
	return nil
}

// oneLine keeps a command's output from breaking the rows.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Examine runs all checks and returns their findings, in the order in which to fix them. It
// takes seconds, because it starts a privileged container and removes it.
func Examine(ctx context.Context, l layout.Layout) []Finding {
	e, engineErr := engine.Find(ctx)
	return slices.Concat(
		[]Finding{docker(ctx, e, engineErr), privileged(ctx, l, e), capabilities(), kernel("/proc/sys/kernel/osrelease"), cgroups("/sys/fs/cgroup")},
		disks(places(ctx, l, e)),
		[]Finding{memory("/proc/meminfo")},
		tools(ctx, l),
		[]Finding{packages(ctx), inotify("/proc/sys/fs/inotify", "/proc"), forwarding("/proc/sys/net/ipv4/ip_forward", e != nil), iptables(ctx), ports()},
	)
}
