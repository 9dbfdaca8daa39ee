#!/bin/sh
# exits.sh CODE COMMAND…: runs the command, and fails unless its exit code is CODE.
expected=$1
shift
"$@"
code=$?
[ "$code" -eq "$expected" ] || { echo "exits.sh: exit code $code, expected $expected" >&2; exit 1; }
