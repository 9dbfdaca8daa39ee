#!/usr/bin/env bash
# consumer.sh SOURCE BUILD WORK: checks that files installed by `cmake --install` name no folder of
# this machine, and that a program outside the tree (consumer/) can be built with them and runs.
set -euo pipefail
source=$1 build=$2 work=$3
prefix=$work/prefix
rm -rf "$prefix" "$work/consumer"
cmake --install "$build" --prefix "$prefix" --component development >"$work/install.log"

if grep -rIn -e "$source" -e "$build" -e /usr/lib/llvm-22 "$prefix"; then
  echo "the installed files above name folders of this machine" >&2
  exit 1
fi
compiler() { sed -n "s/^CMAKE_$1_COMPILER:[A-Z]*=//p" "$build/CMakeCache.txt"; }
cmake -G Ninja -S "$source/test/package/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_C_COMPILER="$(compiler C)" -DCMAKE_CXX_COMPILER="$(compiler CXX)"
cmake --build "$work/consumer" --verbose
"$work/consumer/consumer" "$source/examples/models/gemma3-kjv-1m" 'And Joshua the son of Nun' |
  tee "$work/consumer.out"
diff - "$work/consumer.out" <<'END'
layers 0-5: controllable
verified
END
