#!/usr/bin/env bash
# From a fresh clone to the main job: installs what is missing, builds, then lets ctxc judge every
# block of the model that ships with the project and verify twenty tokens of it.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

model=examples/models/gemma3-kjv-1m
prompt='And David and his men fled from the hand of Saul into the wilderness.
And Jonathan the son of Saul came to David.
Now the'

run() {
  printf '\n$ ctxc'
  printf ' %q' "$@"
  printf '\n'
  "$build/bin/ctxc" "$@"
}

if [[ $ready == 0 ]]; then
  timed setup "$root/tools/setup.sh"
  timed build "$root/tools/build.sh" ctxc
fi
cd "$root"
run check "$model"
run verify "$model" --prompt "$prompt" --generate 20
