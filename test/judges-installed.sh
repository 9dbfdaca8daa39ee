#!/usr/bin/env bash
# judges-installed.sh FOLDER: waits until tools/test.sh, which writes FOLDER, has installed the
# judges. Where it does not run, there is nothing to wait for.
set -u
[[ -e $1/process ]] || exit 0
until [[ -e $1/done ]]; do
  if ! kill -0 "$(<"$1/process")" 2>/dev/null && [[ ! -e $1/done ]]; then
    echo "the judges could not be installed:"
    cat "$1/log"
    exit 1
  fi
  sleep 1
done
cat "$1/log"
