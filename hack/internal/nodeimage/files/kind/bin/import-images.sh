#!/bin/bash
# Imports the images of a published node image into containerd. podenv-images.service runs it at
# each start of the node; only the first has something to do.
#
# usage: import-images.sh [root directory]
set -euo pipefail

root=${1:-}
imported=$root/var/lib/containerd/podenv-images-imported
[ ! -e "$imported" ] || exit 0
# kind's entrypoint writes another snapshotter there where overlayfs does not work
snapshotter=$(sed -n 's/^ *snapshotter = "\(.*\)"$/\1/p' "$root/etc/containerd/config.toml")
find "$root/kind/images" -name '*.tar' -print0 | sort -z |
	xargs -0 -n 1 -P 2 ctr --namespace=k8s.io images import --snapshotter="$snapshotter"
touch "$imported"
