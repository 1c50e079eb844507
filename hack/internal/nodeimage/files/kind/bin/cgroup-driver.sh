#!/bin/sh
# With cgroups left to systemd, on cgroup v1, runc freezes the processes of a new container
# while it sets the rules for devices. On a busy host they may get no CPU time to freeze in,
# and runc, from some v1.1 on, then refuses to start the container ("unable to freeze"). So
# containerd 2, which comes with such a runc, manages cgroups itself there. Kubelets ask
# containerd who does. Found out at each start of the node, so that one image serves every
# host.
#
# usage: cgroup-driver.sh [root directory]
set -eu

root=${1:-}
config=$root/etc/containerd/config.toml
grep -qx 'version = 4' "$config" || exit 0 # containerd 1
systemd=false
if [ -f "$root/sys/fs/cgroup/cgroup.controllers" ]; then
	systemd=true
fi
sed -i "s/SystemdCgroup = .*/SystemdCgroup = $systemd/" "$config"
