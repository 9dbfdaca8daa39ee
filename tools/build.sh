#!/usr/bin/env bash
# Configures and builds ctxc in build/ (or $CTXC_BUILD); run tools/setup.sh before it.
#
#   tools/build.sh [--sanitized] [TARGET…]    everything, or the named CMake targets
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

options=(
  -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22
  -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld
  -DMLIR_DIR=/usr/lib/llvm-22/lib/cmake/mlir -DLLVM_DIR=/usr/lib/llvm-22/lib/cmake/llvm
  -DCTXC_JUDGES="$judges" -DCTXC_MODELS="$models"
)
if [[ ${1-} == --sanitized ]]; then
  options+=(-DCTXC_SANITIZE=ON)
  shift
fi
if command -v ccache >/dev/null; then
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  # Without this ccache refuses every file that uses the precompiled header.
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
fi

mkdir -p "$build"
cmake -G Ninja -S "$root" -B "$build" "${options[@]}" >"$build/configure.log" 2>&1 || {
  cat "$build/configure.log" >&2
  fail "the configuration failed; its messages are above"
}
ninja -C "$build" -j "$jobs" "$@"
