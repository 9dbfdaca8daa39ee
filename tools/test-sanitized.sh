#!/usr/bin/env bash
# Builds with the address and undefined-behaviour sanitizers, in a folder of its own, and runs the
# unit tests of the code that reads what strangers wrote (headers, JSON, patch files) or does
# arithmetic on it. MLIR's own libraries are not instrumented, so what leans on them is left out.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

suites=(Support Checkpoint Tokenizer Numerics Export)

timed setup "$root/tools/setup.sh" --sanitizers
export CTXC_BUILD=${CTXC_BUILD_SANITIZED:-$root/build-sanitized}
timed build "$root/tools/build.sh" --sanitized "${suites[@]/#/unit-}"

# LLVM's libraries grow our containers without telling the sanitizer.
export ASAN_OPTIONS=detect_container_overflow=0:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
exec ctest --test-dir "$CTXC_BUILD" -j "$jobs" --output-on-failure \
  -R "^($(IFS='|'; echo "${suites[*]}"))\\."
