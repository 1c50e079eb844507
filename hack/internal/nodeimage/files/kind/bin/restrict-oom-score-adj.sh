#!/bin/sh
# Without CAP_SYS_RESOURCE no process may lower an oom_score_adj, and runc fails to start a
# container that asks for it. If the node's capability bounding set lacks it, as in nested
# sandboxes, or in a user namespace, containerd must not ask for less than its own. This runs
# at each start of the node, so that one image works on every host.
#
# usage: restrict-oom-score-adj.sh [root directory]
set -eu

root=${1:-}
cap_sys_resource=24
bounding=$(awk '$1 == "CapBnd:" { print $2 }' "$root/proc/1/status")
restrict=true
if [ $(((0x$bounding >> cap_sys_resource) & 1)) -eq 1 ] &&
	grep -Eqx '[[:space:]]*0[[:space:]]+0[[:space:]]+4294967295' "$root/proc/1/uid_map"; then
	restrict=false
fi
sed -i "s/restrict_oom_score_adj = .*/restrict_oom_score_adj = $restrict/" "$root/etc/containerd/config.toml"
