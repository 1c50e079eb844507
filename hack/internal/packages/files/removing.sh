#!/bin/sh
# Before the kubelet is removed. dpkg calls this with "remove", rpm with 0. Before an upgrade it does nothing.
# dpkg keeps the configuration until the purge, and so whether the kubelet is enabled: see reload.sh.
set -e
case "$1" in remove | 0) ;; *) exit 0 ;; esac
command -v systemctl >/dev/null || exit 0
if [ -d /run/systemd/system ]; then systemctl stop kubelet.service; fi
[ "$1" = remove ] || systemctl --no-reload disable kubelet.service
