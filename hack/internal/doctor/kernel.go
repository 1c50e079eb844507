package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/run"
)

// kernel checks whether Linux is new enough for kubeadm (k8s.io/system-validators), and for pods
// with user namespaces, which need idmapped mounts for their volumes.
func kernel(path string) Finding {
	const check = "kernel"
	data, err := os.ReadFile(path)
	if err != nil {
		return warn(check, err.Error(), "mount /proc")
	}
	found := "Linux " + strings.TrimSpace(string(data))
	older := func(version string) bool { return semver.Compare("v"+versionNumber.FindString(found), version) < 0 }
	switch {
	case older("v4.19"):
		return fail(check, found+", older than 4.19", "start a newer kernel")
	case older("v5.4"):
		return warn(check, found+": v1.35 and later ask for 5.4", "start a newer kernel, or choose an older minor with --series")
	case older("v6.3"):
		return ok(check, "%s: too old for user namespaces of pods (6.3), whose specs are skipped", found)
	}
	return ok(check, "%s", found)
}

func iptables(ctx context.Context) Finding {
	if os.Geteuid() != 0 {
		return ok("iptables", "not tried, because only root can")
	}
	return natTable(ctx)
}

// natTable checks the nat table, which both need. Debian has an iptables command for each of two
// interfaces of the kernel, and the kernel may lack one.
func natTable(ctx context.Context) Finding {
	const check = "iptables"
	if _, err := exec.LookPath("iptables"); err != nil {
		return warn(check, "not installed", "`podenv up` installs it with Docker, or as root: `apt-get install iptables`")
	}
	works := func(command string) bool {
		return run.Command(ctx, command, "--wait", "5", "--table", "nat", "--list-rules").Run() == nil
	}
	if works("iptables") {
		return ok(check, "the nat table can be read")
	}
	for _, other := range []string{"iptables-legacy", "iptables-nft"} {
		if works(other) {
			return fail(check, "the kernel has no nat table for it, but for "+other, "as root: `update-alternatives --set iptables /usr/sbin/"+other+"`")
		}
	}
	return fail(check, "the kernel has no nat table", "as root: `modprobe iptable_nat` or `modprobe nft_chain_nat`, or start a kernel that has one")
}

// setting reads a number from a file below /proc/sys.
func setting(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}

// The controllers that the kubelet needs, by version of cgroups.
var (
	controllersV1 = []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer", "blkio"}
	// cpuset is often not delegated. Without it, the kubelet cannot pin CPUs, but works otherwise.
	controllersV2 = []string{"cpu", "memory", "pids"}
)

func cgroups(root string) Finding {
	const check = "cgroups"
	if data, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")); err == nil {
		if missing := without(controllersV2, strings.Fields(string(data))); len(missing) > 0 {
			return fail(check, "v2, without "+strings.Join(missing, ", "), "start the kernel, or this container, with these controllers")
		}
		return ok(check, "v2")
	}
	var mounted []string
	entries, err := os.ReadDir(root)
	for _, entry := range entries {
		// cpu and cpuacct may be mounted together, with links to one directory.
		mounted = append(mounted, strings.Split(entry.Name(), ",")...)
	}
	if err != nil || !slices.Contains(mounted, "memory") {
		return fail(check, "none mounted in "+root, "`apt-get install cgroupfs-mount && cgroupfs-mount` as root")
	}
	if missing := without(controllersV1, mounted); len(missing) > 0 {
		return fail(check, "v1, without "+strings.Join(missing, ", "), "`apt-get install cgroupfs-mount && cgroupfs-mount` as root, or start the kernel with these controllers")
	}
	return ok(check, "v1: works with the node image, which has systemd 252 and lets kubelets of v1.35 and later run on v1; systemd 257 and later need v2")
}

func without(wanted, have []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return slices.Contains(have, name) })
}

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

// proc is the folder of the kernel's files, which tests replace.
var proc = "/proc"

func inotifyFile(limit string) string { return filepath.Join(proc, "sys/fs/inotify", limit) }

// limits are the inotify limits of one user, and how many instances are in use.
type limits struct{ instances, used, watches int }

// readLimits reads the limits and counts the instances of all processes that this user may
// inspect. Most are root's, as the nodes' will be.
func readLimits() (l limits, err error) {
	for name, limit := range map[string]*int{"max_user_instances": &l.instances, "max_user_watches": &l.watches} {
		if *limit, err = setting(inotifyFile(name)); err != nil {
			return limits{}, err
		}
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
func inotify() Finding {
	const check = "inotify limits"
	l, err := readLimits()
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
func RaiseInotify() {
	for name, advised := range kindLimits {
		if now, err := setting(inotifyFile(name)); err == nil && now < advised {
			_ = os.WriteFile(inotifyFile(name), strconv.AppendInt(nil, int64(advised), 10), 0)
		}
	}
}

// InotifyFor returns an error if the kernel has too few instances left for a new cluster with
// that many nodes, with the remedy.
func InotifyFor(controlPlanes, workers int) error {
	l, err := readLimits()
	needed := controlPlanes*controlPlaneInstances + workers*workerInstances
	if err != nil || l.instances-l.used >= needed { // podenv doctor reports limits that cannot be read
		return nil
	}
	return remedy.New(
		fmt.Errorf("too few inotify instances: fs.inotify.max_user_instances is %d, %d of them are in use, and a cluster of %d nodes takes %d", l.instances, l.used, controlPlanes+workers, needed),
		inotifyRemedy,
	)
}
