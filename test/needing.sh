#!/usr/bin/env bash
# needing.sh PATH… -- COMMAND…: runs the command; or, where a path does not exist, names it and
# exits with 77, which CTest counts as skipped.
while [[ $1 != -- ]]; do
  if [[ ! -e $1 ]]; then
    echo "skipped: $1 is not there; tools/setup.sh --judges makes it, where it can be had"
    exit 77
  fi
  shift
done
shift
exec "$@"
