#!/usr/bin/env bash
# Installs what is missing, the judges included, builds, and runs every test. What cannot run here is listed by
# reason and name behind the tests (tools/tested.py); the last lines are CTest's own.
#
#   tools/test.sh [CTEST-ARGUMENTS…]    for example: tools/test.sh -R Numerics
#   tools/test.sh --changed [COMMIT]    what differs from COMMIT (default: where this branch left
#                                       main): builds the unit and lit tests of the libraries that
#                                       changed, and runs those that are not slow
#
# docs/testing.md tells how the tests are organised.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The room of each file that git lists: lib/Planning/PlanCost.cpp and test/Planning/x.mlir belong to
# Planning.
rooms_of() {
  sed -nE -e 's,^(lib|include/ctxc|test/unit|test)/([A-Za-z]+)/.*,\2,p' \
    -e 's,^dialects/.*,Dialect,p' -e 's,^tools/ctxc/.*,Driver,p' | sort -u
}

changed() {
  local base=$1 targets names room
  [[ -n $base ]] || base=$(git -C "$root" merge-base HEAD main 2>/dev/null || echo HEAD)
  local known
  known=$(sed -nE 's/^build tests-of-([A-Za-z]+): phony.*/\1/p' "$build/build.ninja")
  local rooms=()
  while read -r room; do
    if grep -qx "$room" <<<"$known"; then rooms+=("$room"); fi
  done < <({
    git -C "$root" diff --name-only "$base"
    git -C "$root" ls-files --others --exclude-standard
  } | rooms_of)
  if [[ ${#rooms[@]} -eq 0 ]]; then
    say "no library differs from $base"
    return
  fi
  say "changed: ${rooms[*]}"
  timed build "$root/tools/build.sh" "${rooms[@]/#/tests-of-}"
  names=$(IFS='|'; echo "${rooms[*]}")
  exec ctest --test-dir "$build" -j "$jobs" --output-on-failure -L "^($names)$" -LE '^slow$'
}

if [[ ${1-} == --changed ]]; then
  [[ -f $build/build.ninja ]] || timed configure "$root/tools/build.sh" --configure
  changed "${2-}"
  exit
fi

# The judges are installed while the build runs, and while the first tests do: those that need a
# judge wait for judges.installed. All tests wait for the Debian packages.
timed setup "$root/tools/setup.sh" --python --mpi
mkdir -p "$build"
judging=$build/judges.installing
rm -rf "$judging"
mkdir "$judging"
{
  "$root/tools/setup.sh" --test-packages
  touch "$judging/has-packages"
  timed judges "$root/tools/setup.sh" --judges
  touch "$judging/done"
} >"$judging/log" 2>&1 &
echo $! >"$judging/process"
timed build "$root/tools/build.sh"
until [[ -e $judging/has-packages ]]; do
  kill -0 "$(<"$judging/process")" 2>/dev/null || fail "packages are missing: $(<"$judging/log")"
  sleep 1
done
# Two tests at once have more threads than there are cores. A thread that waits for the others of its
# process must not keep them from a core: judges then take a quarter of the time.
export OMP_WAIT_POLICY=passive
say "$(awk '/^# [0-9]+ tests$/ { n += $2 } END { print n }' "$build"/test/unit/*.groups.cmake)" \
  "unit tests, in groups of one process"
# CTest's summary comes last, behind what could not run here.
before_summary() {
  local line held=""
  while IFS= read -r line; do
    [[ -z $held && ! $line =~ ^[0-9]+%\ tests\ passed ]] && printf '%s\n' "$line" || held+=$line$'\n'
  done
  "$root/tools/tested.py" "$build" || true
  printf '\n%s' "$held"
}
ctest --test-dir "$build" -j "$jobs" --output-on-failure --output-junit "$build/tested.xml" \
  --test-output-size-passed 100000000 "$@" | before_summary
