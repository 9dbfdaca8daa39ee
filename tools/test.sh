#!/usr/bin/env bash
# Installs what is missing, the judges included, builds, and runs every test. The last lines are
# CTest's own; a test that cannot run here is reported as skipped, by name.
#
#   tools/test.sh [CTEST-ARGUMENTS…]    for example: tools/test.sh -R Numerics
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

timed setup "$root/tools/setup.sh" --judges
timed build "$root/tools/build.sh"
exec ctest --test-dir "$build" -j "$jobs" --output-on-failure "$@"
