#!/bin/sh
# After units have come or gone.
set -e
if [ "$DPKG_MAINTSCRIPT_PACKAGE $1" = "kubelet purge" ]; then rm -f "$DPKG_ROOT/etc/systemd/system/multi-user.target.wants/kubelet.service"; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
