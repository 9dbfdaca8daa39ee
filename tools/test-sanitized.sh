#!/usr/bin/env bash
# Builds with the address and undefined-behaviour sanitizers, in a folder of its own, and runs the
# unit tests of the code that reads or computes with untrusted files (headers, JSON, patch files);
# with --all, every unit test, and the Python package's own tests. MLIR's own libraries and kernels are not instrumented.
#
#   tools/test-sanitized.sh [--all]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

suites=(Support Template Checkpoint Tokenizer Numerics Export)
targets=("${suites[@]/#/unit-}")
chosen=(-R "^($(IFS='|'; echo "${suites[*]}"))\\.")
if [[ ${1-} == --all ]]; then
  targets=(unit-tests ctxc ctxc-python)
  chosen=(-L '^(unit|sanitized)$')
fi

export CTXC_JUDGES=$judges CTXC_MODELS=$models CTXC_BUILD=${CTXC_BUILD_SANITIZED:-$root/build-sanitized}
timed setup "$root/tools/setup.sh" --sanitizers
if [[ ${1-} == --all ]]; then timed python "$root/tools/setup.sh" --python --judges; fi
timed build "$root/tools/build.sh" --sanitized "${targets[@]}"

# LLVM's libraries grow containers and use allocators of ctxc without telling the sanitizer.
export ASAN_OPTIONS=detect_container_overflow=0:strict_string_checks=1:allow_user_poisoning=0
export UBSAN_OPTIONS=print_stacktrace=1
exec ctest --test-dir "$CTXC_BUILD" -j "$jobs" --output-on-failure "${chosen[@]}"
