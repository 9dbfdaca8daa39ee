#!/usr/bin/env bash
# Configures and builds ctxc in build/ (or $CTXC_BUILD) by a preset of CMakePresets.json; run
# tools/setup.sh before it.
#
#   tools/build.sh [--sanitized|--fuzz] [--single-files] [TARGET…]    everything, or the named CMake targets
#   tools/build.sh [--sanitized|--fuzz] --configure                   configures alone
#
# --single-files compiles each source by itself (ctxc_join_files in cmake/CtxcLibrary.cmake).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Kilobytes of memory and of disk: the largest compilation, the folder with the tools alone, and with everything.
job_takes=600000 tools_take=400000 all_takes=1600000

need_programs() {
  local program wanted found lacking=()
  for program in cmake ninja clang-22 clang++-22 ld.lld-22; do
    command -v $program >/dev/null || lacking+=($program)
  done
  [[ ${#lacking[@]} -eq 0 ]] ||
    fail "this machine has no ${lacking[*]}; tools/setup.sh installs what a build needs"
  wanted=$(sed -nE 's/^cmake_minimum_required\(VERSION (.*)\)/\1/p' "$root/CMakeLists.txt")
  found=$(cmake --version | sed -nE '1s/.* //p')
  [[ $(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1) == "$wanted" ]] ||
    fail "cmake $wanted or newer is needed, and $(command -v cmake) is $found"
}

# Kilobytes of memory that are free here, in this control group too.
free_memory() {
  local free limit used
  free=$(awk '/^(MemAvailable|SwapFree):/ { sum += $2 } END { print sum }' /proc/meminfo)
  if [[ -r /sys/fs/cgroup/memory.max && $(</sys/fs/cgroup/memory.max) != max ]]; then
    limit=$(</sys/fs/cgroup/memory.max) used=$(</sys/fs/cgroup/memory.current)
    [[ $(((limit - used) / 1024)) -ge $free ]] || free=$(((limit - used) / 1024))
  fi
  echo "$free"
}

# Takes as many jobs as there is memory for.
need_memory() {
  local free
  free=$(free_memory)
  [[ $free -ge $job_takes ]] ||
    fail "a build takes $(gigabytes $job_takes) of memory at least, and $(gigabytes "$free") are free"
  if [[ $((free / job_takes)) -lt $jobs ]]; then
    jobs=$((free / job_takes))
    say "$(gigabytes "$free") of memory are free: $jobs at a time"
  fi
}

# Reads what ninja prints, and prints how far it is: in one line on a terminal, elsewhere at every tenth. What
# compilers say passes.
progress() {
  local start=$SECONDS line done total left time tenth shown=0 clear=""
  [[ ! -t 1 ]] || clear=$'\r\e[K'
  while IFS= read -r line; do
    if [[ ! $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
      [[ $line == "ninja: "*"directory"* ]] || printf '%s%s\n' "$clear" "$line"
      continue
    fi
    done=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    [[ $done -gt 0 && $total -gt 1 ]] || continue
    left=$(((SECONDS - start) * (total - done) / done))
    time="$(((left + 59) / 60)) min"
    [[ $left -ge 60 ]] || time="less than a minute"
    if [[ -n $clear ]]; then
      printf '%s== built: %d of %d, %s left' "$clear" "$done" "$total" "$time"
    elif tenth=$((10 * done / total)) && [[ $tenth -gt $shown ]]; then
      shown=$tenth
      printf '== built: %d of %d, %s left\n' "$done" "$total" "$time"
    fi
  done
  printf '%s' "$clear"
}

preset=release
options=(
  -DCTXC_CCACHE_DIR="$(ccache --get-config cache_dir 2>/dev/null)"
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
configure_only=0
if [[ ${1-} == --configure ]]; then
  configure_only=1
  shift
fi
# The Python package where there are nanobind and Python's headers.
if "$build/python-tools/bin/python" -c 'import nanobind, os, sysconfig
os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null; then
  options+=(-DCTXC_BUILD_PYTHON=ON -DPython_EXECUTABLE="$build/python-tools/bin/python")
else
  options+=(-DCTXC_BUILD_PYTHON=OFF)
fi
if ! command -v ccache >/dev/null; then
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=)
else
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  # Without this ccache refuses every file that uses the precompiled header.
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  # See cmake/CtxcPrecompile.cmake.
  export CCACHE_PCH_EXTSUM=1
  # ccache replaces paths below this folder by relative ones, so that another clone finds what this
  # one has compiled.
  export CCACHE_BASEDIR=$root
fi

need_programs
make_build_folder
log=$build/configure.log
new=0
if [[ ! -f $build/build.ninja ]]; then
  new=1
  [[ $# -gt 0 || $configure_only == 1 ]] && takes=$tools_take || takes=$all_takes
  need_disk "$build" "$takes" "the build folder"
fi
[[ $configure_only == 1 ]] || need_memory
cmake -S "$root" --preset "$preset" -B "$build" "${options[@]}" >"$log" 2>&1 || {
  # CMake sets a message in lines behind the place that gave it.
  cause=$(awk '/^CMake Error/ { on = 1; next } on && /^$/ { if (text) exit; next } on && /^[^ ]/ { exit }
               on { gsub(/^ +/, ""); text = text (text ? " " : "") $0 } END { print text }' "$log")
  fail "the configuration failed: ${cause:-see its last lines}; all of CMake's messages are in $log"
}
# What this build cannot do is said once.
lacks=$(sed -nE 's/^-- (without .*)/\1/p' "$log")
if [[ -n $lacks && ($new == 1 || $configure_only == 1) ]]; then
  while IFS= read -r line; do say "$line"; done <<<"$lacks"
fi
[[ $configure_only == 0 ]] || exit 0
NINJA_STATUS='[%f/%t] ' ninja -C "$build" -j "$jobs" "$@" 2>&1 | progress
