# The other scripts of this folder source this file, for paths and messages. It reads these
# variables:
#
#   CTXC_BUILD    the build folder (default: build, beside tools)
#   CTXC_JUDGES   the judges' Python environment (default: $CTXC_BUILD/judges)
#   CTXC_MODELS   where Gemma 3 270M is kept (default: $CTXC_BUILD/models)
#   CTXC_TEST_CACHE  where tests keep kernels, shaders and transformers' answers from run to run
#                    (default: ~/.cache/ctxc-tests)
#   CTXC_KERNEL_OPT  LLVM's optimisation level for the kernels of tests, 0 to 3 (default: 0)
#   CTXC_NIGHTLY  1 to have the tests, too, that only a run of hours has room for
#   CTXC_READY    1 if setup and build are known to be done (set by the tests of the READMEs)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
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

# timed LABEL COMMAND…: runs the command, prints how long it took, and fails if it fails.
timed() {
  local label=$1 start=$SECONDS
  shift
  "$@" || return
  say "$label: $((SECONDS - start)) s"
}
