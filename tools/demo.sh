#!/usr/bin/env bash
# From a fresh clone to ctxc's main purpose: installs what is missing, builds, checks every block of
# the model that comes with the project, and verifies twenty tokens of it.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

model=examples/models/gemma3-kjv-1m
prompt='And Joshua the son of Nun sent two men to spy out the land, even Jericho.
And they came into the house of Rahab the harlot, and lodged there; and the king of Jericho sought them.
Then answered'

# Prints the command as a user would type it, and runs it.
run() {
  local word
  printf '\n+ ctxc'
  for word in "$@"; do
    case $word in
    *[!A-Za-z0-9/._-]*) printf " '%s'" "$word" ;;
    *) printf ' %s' "$word" ;;
    esac
  done
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
