package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
)

// docker checks the engine itself. An engine that does not run is only a warning if `podenv up`
// can start it.
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
