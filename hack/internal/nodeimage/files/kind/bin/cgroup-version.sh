#!/bin/sh
# What containerd and the kubelet must know of the host's version of cgroups. Found out at
# each start of either, so that one image serves every host, whoever creates the cluster.
#
# With cgroups left to systemd, on cgroup v1, runc freezes the processes of a new container
# while it sets the rules for devices. On a busy host they may get no CPU time to freeze in,
# and runc, from some v1.1 on, then refuses to start the container ("unable to freeze"). So
# containerd manages cgroups itself there. Kubelets from v1.31 on ask containerd who does;
# older ones are told, and those from v1.35 on that cgroup v1 is wanted.
#
# usage: cgroup-version.sh [root directory]
set -eu

root=${1:-}
systemd=false driver='cgroupfs\nfailCgroupV1: false'
if [ -f "$root/sys/fs/cgroup/cgroup.controllers" ]; then
	systemd=true driver=systemd
fi
sed -i "s/SystemdCgroup = .*/SystemdCgroup = $systemd/" "$root/etc/containerd/config.toml"
kubelet=$root/var/lib/kubelet/config.yaml
if [ -f "$kubelet" ]; then # kubeadm has written it
	sed -i "/^failCgroupV1:/d; s/^cgroupDriver: .*/cgroupDriver: $driver/" "$kubelet"
fi
