package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"podenv.dev/hack/internal/remedy"
)

// The kernel limits inotify instances and watches per user, and the services of all nodes
// run as root. Above the limit they fail with "too many open files" (kind's known issues):
// the cluster comes up late or not at all.
const (
	// Instances counted in running nodes: 4 of systemd, 1 of containerd, 7 of
	// the kubelet, 1 of kube-proxy, and on the control plane 13 of its other components.
	controlPlaneInstances = 26
	workerInstances       = 13
	// spareInstances are for processes of the host, and for a third node.
	spareInstances = 20

	inotifyWatches = 65536
	inotifyRemedy  = "as root: `sysctl fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288`; the same lines in /etc/sysctl.d/99-podenv.conf keep it"
)

// kindLimits are the settings that kind's known issues advise.
var kindLimits = map[string]int{"max_user_instances": 512, "max_user_watches": 524288}

// limits are the inotify limits of one user, and how many instances are in use.
type limits struct{ instances, used, watches int }

// readLimits reads the limits in dir and counts the instances in proc, of all processes that
// this user may inspect. Most are root's, as the nodes' will be.
func readLimits(dir, proc string) (l limits, err error) {
	if l.instances, err = setting(filepath.Join(dir, "max_user_instances")); err != nil {
		return limits{}, err
	}
	if l.watches, err = setting(filepath.Join(dir, "max_user_watches")); err != nil {
		return limits{}, err
	}
	// Glob fails only on a malformed pattern.
	files, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*"))
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == "anon_inode:inotify" {
			l.used++
		}
	}
	return l, nil
}

func (l limits) String() string {
	return fmt.Sprintf("%d instances, %d of them in use, %d watches", l.instances, l.used, l.watches)
}

// inotify checks whether the limits leave room for a cluster of two nodes.
func inotify(dir, proc string) Finding {
	const check = "inotify limits"
	l, err := readLimits(dir, proc)
	if err != nil {
		return warn(check, err.Error(), "mount /proc")
	}
	if l.instances-l.used < controlPlaneInstances+workerInstances+spareInstances || l.watches < inotifyWatches {
		return warn(check, l.String(), inotifyRemedy)
	}
	return ok(check, "%s", l)
}

// RaiseInotify raises limits below those that kind advises, until the next boot. It leaves what
// this process may not change: Examine warns of it, and InotifyFor refuses.
func RaiseInotify() { raiseInotify("/proc/sys/fs/inotify") }

func raiseInotify(dir string) {
	for name, advised := range kindLimits {
		path := filepath.Join(dir, name)
		if now, err := setting(path); err == nil && now < advised {
			_ = os.WriteFile(path, strconv.AppendInt(nil, int64(advised), 10), 0)
		}
	}
}

// InotifyFor returns an error if the kernel has too few instances left for a new cluster with
// that many nodes, with the remedy.
func InotifyFor(controlPlanes, workers int) error {
	return inotifyFor(controlPlanes, workers, "/proc/sys/fs/inotify", "/proc")
}

func inotifyFor(controlPlanes, workers int, dir, proc string) error {
	l, err := readLimits(dir, proc)
	needed := controlPlanes*controlPlaneInstances + workers*workerInstances
	if err != nil || l.instances-l.used >= needed { // podenv doctor reports limits that cannot be read
		return nil
	}
	return remedy.New(
		fmt.Errorf("too few inotify instances: fs.inotify.max_user_instances is %d, %d of them are in use, and a cluster of %d nodes takes %d", l.instances, l.used, controlPlanes+workers, needed),
		inotifyRemedy,
	)
}
