#!/bin/bash
# Imports the images of a published node image into containerd. podenv-images.service runs it at
# each start of the node; only the first has something to do.
#
# usage: import-images.sh [root directory]
set -euo pipefail

root=${1:-}
imported=$root/var/lib/containerd/podenv-images-imported
[ ! -e "$imported" ] || exit 0
# The first one is that of CRI: kind's entrypoint writes another one there where overlayfs does not work.
snapshotter=$(grep --max-count=1 '^ *snapshotter = ' "$root/etc/containerd/config.toml" | cut --delimiter='"' --fields=2)
find "$root/kind/images" -name '*.tar' -print0 | sort -z |
	xargs -0 -n 1 -P 2 ctr --namespace=k8s.io images import --snapshotter="$snapshotter"
touch "$imported"
