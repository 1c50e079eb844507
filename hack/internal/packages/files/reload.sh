#!/bin/sh
# After units have come or gone.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
