#!/usr/bin/env bash
# Runs what takes hours: every test, with kernels optimised as users have them; the wheel; the site; hundreds of
# thousands of random blocks, different ones every night; mutants of the analysis; every source
# compiled by itself; every unit test under the sanitizers; ten minutes of fuzzing for each reader of
# untrusted files; every fault of the system; models over several ranks; every model type of transformers. Continues where a part fails,
# and fails at the end.
#
#   tools/test-nightly.sh [BLOCKS]    how many random blocks (default: 1000000)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

blocks=${1:-1000000}
failed=()
# part FUNCTION: runs the function, and records whether it fails.
part() {
  say "$1"
  timed "$1" "$1" || failed+=("$1")
}

optimised() {
  "$root/tools/setup.sh" --interpretability
  CTXC_KERNEL_OPT=3 CTXC_NIGHTLY=1 "$root/tools/test.sh"
}

# What no machine had for a week was tested nowhere. Commit test/tested.tsv, so that other machines know.
tested_everywhere() { "$root/tools/tested.py" "$build" --record --within 7; }

# The wheel on a Debian that has no LLVM, and another Python.
wheel() {
  "$root/tools/wheel.sh" "$build/wheels" &&
    "$root/test/python/elsewhere.sh" "$root" "$build/test/python/elsewhere" "$build"/wheels/ctxc-*.whl
}

# The site of all pages, and how it looks in a wide and a narrow window.
site() {
  "$root/tools/docs.sh" &&
    python3 "$root/test/Inspect/site.py" "$(command -v chromium)" "$build/site"
}

# Each day takes another range of seeds. The log names it, so that a failure can be reproduced, and
# a run that was stopped goes on if it is started again on that day.
random_blocks() {
  local first=$(($(date +%s) / 86400 * blocks))
  say "seeds $first to $((first + blocks - 1)); of a hundredth of them the proofs too"
  mkdir -p "$build/random-blocks"
  CTXC_PROPERTY_SEEDS=$first:$((blocks / 100)) ctest --test-dir "$build" --output-on-failure \
    --timeout 86400 -R '^Proof\.Agreement' &&
    "$root/tools/random-blocks.py" "$build/random-blocks/$first" --first $first --count "$blocks" \
      --jobs "$jobs" --program "$build/bin/unit-Property"
}

# The same by numpy, whose arithmetic is none of ctxc's.
numpy_blocks() {
  local first=$(($(date +%s) / 86400 * blocks))
  mkdir -p "$build/random-blocks"
  "$root/tools/random-blocks.py" "$build/random-blocks/numpy-$first" --first $first --count "$blocks" \
    --jobs "$jobs" --numpy "$judges/bin/python"
}

# Each condition of the analysis is dropped once, and a test must notice.
mutants() { "$root/tools/test-mutants.py" --jobs "$jobs"; }

# A copy of the tree with a new activation, update rule, option and op.
new_names() { python3 "$root/test/package/new.py" "$root" "$build/new"; }

single_files() {
  CTXC_BUILD=$root/build-single-files "$root/tools/build.sh" --single-files all check-headers
}

sanitized() { "$root/tools/test-sanitized.sh" --all; }

# Ten minutes a reader of untrusted files.
fuzzed() { "$root/tools/fuzz.sh" 600; }

# Every call fails once.
all_faults() { "$root/tools/build.sh" all-faults; }

# Two to six ranks, and ranks that are killed, by every MPI of the build.
all_ranks() { "$root/tools/build.sh" all-ranks; }

# Each causal model type of transformers is exported, checked, and held against numbers.
torch_types() {
  "$judges/bin/python" "$root/test/types/run.py" "$build/bin/ctxc" "$root/python" "$build/types" --fresh \
    --against "$root/docs/torch-types.md"
}
# 32,768 tokens, against transformers.
long_contexts() { "$root/tools/build.sh" all-long; }

part optimised
part tested_everywhere
part wheel
part site
part random_blocks
part numpy_blocks
part mutants
part new_names
part single_files
part sanitized
part fuzzed
part all_faults
part all_ranks
part torch_types
part long_contexts
[[ ${#failed[@]} -eq 0 ]] || fail "failed: ${failed[*]}"
