#!/bin/sh
# full.sh COMMAND…: runs the command with files limited to 2 KiB, as on a full disk.
trap '' XFSZ
ulimit -f 4
exec "$@"
