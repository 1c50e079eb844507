#!/bin/sh
# Configures containerd and the kubelet for the host's version of cgroups. It runs at each start
# of either, so that one image works on every host, whoever creates the cluster.
#
# With the systemd cgroup driver on cgroup v1, runc freezes the processes of a new container
# while it sets the device rules. On a busy host they may get no CPU time to freeze, and runc,
# from some v1.1 on, then refuses to start the container ("unable to freeze"). So containerd
# manages cgroups itself on cgroup v1. Kubelets from v1.31 on get the driver from containerd;
# older ones need it in their configuration. Those from v1.35 on must be told to accept v1.
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
