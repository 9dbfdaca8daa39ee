#!/usr/bin/env bash
# Configures and builds ctxc in build/ (or $CTXC_BUILD) by a preset of CMakePresets.json; run
# tools/setup.sh before it.
#
#   tools/build.sh [--sanitized|--fuzz] [--single-files] [TARGET…]    everything, or the named CMake targets
#
# --single-files compiles each source by itself (ctxc_join_files in cmake/CtxcLibrary.cmake).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=release
options=(
  -DCTXC_JUDGES="$judges" -DCTXC_MODELS="$models" -DCTXC_TEST_CACHE="$test_cache"
  -DCTXC_TEST_KERNEL_OPT="${CTXC_KERNEL_OPT:-0}"
  -DCTXC_NIGHTLY="$([[ ${CTXC_NIGHTLY:-0} == 1 ]] && echo ON || echo OFF)"
)
if [[ ${1-} == --sanitized || ${1-} == --fuzz ]]; then
  preset=${1#--}
  shift
fi
if [[ ${1-} == --single-files ]]; then
  options+=(-DCTXC_SINGLE_FILES=ON)
  shift
fi
if "$build/python-tools/bin/python" -c 'import nanobind' 2>/dev/null; then
  options+=(-DCTXC_BUILD_PYTHON=ON -DPython_EXECUTABLE="$build/python-tools/bin/python")
fi
if command -v ccache >/dev/null; then
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  # Without this ccache refuses every file that uses the precompiled header.
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  # See cmake/CtxcPrecompile.cmake.
  export CCACHE_PCH_EXTSUM=1
  # ccache replaces paths below this folder by relative ones, so that another clone finds what this
  # one has compiled.
  export CCACHE_BASEDIR=$root
fi

mkdir -p "$build"
cmake -S "$root" --preset "$preset" -B "$build" "${options[@]}" >"$build/configure.log" 2>&1 || {
  cat "$build/configure.log" >&2
  fail "the configuration failed; its messages are above"
}
ninja -C "$build" -j "$jobs" "$@"
