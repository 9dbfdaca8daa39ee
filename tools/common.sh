# The other scripts of this folder source this file, for paths and messages. It reads these
# variables:
#
#   CTXC_BUILD    the build folder (default: build, beside tools)
#   CTXC_JUDGES   the judges' Python environment (default: $CTXC_BUILD/judges)
#   CTXC_MODELS   where Gemma 3 270M, SmolLM2 135M and MiniLM L6 are kept (default: $CTXC_BUILD/models)
#   CTXC_TEST_CACHE  where tests keep kernels, shaders and transformers' answers from run to run
#                    (default: ~/.cache/ctxc-tests)
#   CTXC_KERNEL_OPT  LLVM's optimisation level for the kernels of tests, 0 to 3 (default: 0)
#   CTXC_NIGHTLY  1 to have the tests, too, that only a run of hours has room for
#   CTXC_READY    1 if setup and build are known to be done (set by the tests of the READMEs)
set -euo pipefail

unset CDPATH # with it, cd prints
# Messages of apt and CMake are read here, and ccache has the language in its key.
unset LC_ALL LC_CTYPE LC_MESSAGES
export LANG=C.UTF-8
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Services and containers have no HOME, which pip, npm and ccache need.
: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
export HOME
build=${CTXC_BUILD:-$root/build}
judges=${CTXC_JUDGES:-$build/judges}
models=${CTXC_MODELS:-$build/models}
test_cache=${CTXC_TEST_CACHE:-$HOME/.cache/ctxc-tests}
ready=${CTXC_READY:-0}
jobs=$(nproc)
# Some environments forbid Python to keep what it has compiled. Each of the tests' many processes
# would then compile transformers anew, which takes two seconds, and some eight with an export.
unset PYTHONDONTWRITEBYTECODE

say() { printf '== %s\n' "$*"; }
fail() {
  printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
  exit 2
}

make_build_folder() {
  { mkdir -p "$build" && [[ -w $build ]]; } 2>/dev/null ||
    fail "the build folder $build cannot be written; CTXC_BUILD names another place"
}

# gigabytes KILOBYTES: 0.4 GB; below 0.1 GB, in MB.
gigabytes() {
  awk -v kilobytes="$1" 'BEGIN { if (kilobytes < 1e5) printf "%.0f MB", kilobytes / 1e3; else printf "%.1f GB", kilobytes / 1e6 }'
}

# need_disk FOLDER KILOBYTES WHAT: fails where the folder's disk has less room than WHAT takes.
need_disk() {
  local room
  room=$(df -Pk "$1" | awk 'NR == 2 { print $4 }')
  [[ $room -ge $2 ]] || fail "$3 takes $(gigabytes "$2") of disk, and $1 has $(gigabytes "$room")"
}

# timed LABEL COMMAND…: runs the command, prints how long it took, and fails if it fails.
timed() {
  local label=$1 start=$SECONDS
  shift
  "$@" || return
  say "$label: $((SECONDS - start)) s"
}
