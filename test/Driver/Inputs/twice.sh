#!/bin/sh
# twice.sh COMMAND…: as pasted twice; fails where one of the two does.
"$@" && "$@"
