#!/bin/sh
# Before the kubelet is removed. dpkg calls this with "remove", rpm with 0. Before an upgrade it does nothing.
set -e
case "$1" in remove | 0) ;; *) exit 0 ;; esac
command -v systemctl >/dev/null || exit 0
if [ -d /run/systemd/system ]; then systemctl stop kubelet.service; fi
systemctl --no-reload disable kubelet.service
