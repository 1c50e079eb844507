#!/bin/sh
# After the installation of the kubelet. dpkg calls this with "configure" and the version before, rpm with the number
# of installed versions. An upgrade restarts nothing: the node may not be drained.
set -e
command -v systemctl >/dev/null || exit 0
case "$1 $2" in "configure " | "1 ") systemctl preset kubelet.service ;; esac
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
