package doctor

import (
	"context"
	"slices"
	"sync"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
)

// Examine runs all checks and returns their findings, in the order in which to fix them. It
// takes about a second, because it starts a privileged container and removes it.
func Examine(ctx context.Context, l layout.Layout) []Finding {
	e, engineErr := engine.Find(ctx)
	checks := []func() []Finding{
		func() []Finding { return []Finding{docker(ctx, e, engineErr)} },
		func() []Finding { return []Finding{privileged(ctx, l, e)} },
		func() []Finding { return []Finding{capabilities()} },
		func() []Finding { return []Finding{kernel("/proc/sys/kernel/osrelease")} },
		func() []Finding { return []Finding{cgroups("/sys/fs/cgroup")} },
		func() []Finding { return disks(places(ctx, l, e)) },
		func() []Finding { return []Finding{memory("/proc/meminfo")} },
		func() []Finding { return tools(ctx, l) },
		func() []Finding { return []Finding{packages(ctx)} },
		func() []Finding { return []Finding{inotify("/proc/sys/fs/inotify", "/proc")} },
		func() []Finding { return []Finding{forwarding("/proc/sys/net/ipv4/ip_forward", e != nil)} },
		func() []Finding { return []Finding{iptables(ctx)} },
		func() []Finding { return []Finding{ports()} },
	}
	found := make([][]Finding, len(checks))
	var group sync.WaitGroup
	for i, check := range checks {
		group.Go(func() { found[i] = check() })
	}
	group.Wait()
	return slices.Concat(found...)
}
