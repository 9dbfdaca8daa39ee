#!/usr/bin/env bash
# Fuzzes the readers of untrusted files with libFuzzer, under the address and undefined-behaviour sanitizers, and
# prints a table: executions, edges covered, findings.
#
#   tools/fuzz.sh [SECONDS] [READER…]    each reader for SECONDS (default: 600; 0 replays the corpus); default: all
#
# What is new is kept in $CTXC_BUILD/found/READER, and goes on from there in the next run. A finding is
# $CTXC_BUILD/findings/READER-…; `ctxc-fuzz --reader=READER FILE` shows it again. Its smallest form
# belongs in test/fuzz/corpus/READER, with the repair. docs/testing.md has more.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=600
if [[ ${1-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
all=(mlir config gguf tokenizer-json sentencepiece template safetensors index npy patch patches adapter proof
  witness records pt2 torch-program program)
readers=("${@:-${all[@]}}")

# Words that a reader compares with stand in its sources.
declare -A sources=(
  [mlir]='dialects/XF/*.cpp dialects/XF/*.td' [config]='lib/Import/HuggingFace/*.cpp'
  [gguf]='lib/Checkpoint/Gguf*.cpp lib/Checkpoint/Gguf*.h lib/Tokenizer/GgufTokenizer.cpp'
  [tokenizer-json]='lib/Tokenizer/*.cpp' [sentencepiece]='lib/Tokenizer/SentencePiece.cpp'
  [template]='lib/Template/*.cpp lib/Tokenizer/ChatTemplate.cpp'
  [safetensors]='lib/Checkpoint/*afetensors*.cpp lib/Checkpoint/DType.cpp lib/Checkpoint/Scaled*.cpp'
  [index]='lib/Checkpoint/ShardIndex.cpp' [npy]='lib/Checkpoint/Npy.cpp'
  [adapter]='lib/Export/LastingAdapter.cpp lib/Export/PeftConfig.cpp'
  [patch]='lib/Export/PatchFile.cpp lib/Checkpoint/DType.cpp'
  [patches]='lib/Export/Patch*.cpp lib/Checkpoint/DType.cpp' [proof]='lib/Proof/*.cpp'
  [pt2]='lib/Import/Graph/Archive.cpp'
  [torch-program]='lib/Import/Graph/ReadProgram.cpp lib/Import/Graph/ReadArguments.cpp lib/Import/Graph/Symbols.cpp'
  [program]='lib/Import/Graph/*.cpp lib/Analysis/Token*.cpp dialects/Graph/*.cpp'
  [witness]='lib/Evidence/WitnessFile.cpp' [records]='lib/Experiments/Records.cpp'
)
dictionary() {
  (cd "$root" && { LC_ALL=C grep -ohE '"[]!#-.0-[^-~]{2,40}"' ${sources[$1]} || true; } | sort -u)
}

export CTXC_BUILD=${CTXC_BUILD_FUZZ:-$root/build-fuzz}
build=$CTXC_BUILD
timed build "$root/tools/build.sh" --fuzz ctxc-fuzz >&2
# LLVM's libraries grow containers and use allocators of ctxc without telling the sanitizer.
export ASAN_OPTIONS=detect_container_overflow=0:strict_string_checks=1:allow_user_poisoning=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$build/findings"

failed=0
printf '%-16s%14s%10s%10s%10s\n' reader executions edges inputs findings
for reader in "${readers[@]}"; do
  found=$build/found/$reader log=$build/found/$reader.log
  mkdir -p "$found"
  dictionary "$reader" >"$build/found/$reader.dict"
  options=(-max_total_time="$seconds")
  [[ $seconds == 0 ]] && options=(-runs=0)
  [[ -s $build/found/$reader.dict ]] && options+=(-dict="$build/found/$reader.dict")
  before=$(ls "$build/findings" | grep -c "^$reader-" || true)
  code=0
  "$build/bin/ctxc-fuzz" --reader="$reader" "${options[@]}" -timeout=20 -report_slow_units=20 -rss_limit_mb=2500 \
    -max_len=8192 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$reader-" "$found" "$root/test/fuzz/corpus/$reader" \
    >"$log" 2>&1 || code=$?
  executions=$(sed -nE 's/^stat::number_of_executed_units: *//p' "$log")
  edges=$(sed -nE 's/.* cov: ([0-9]+) .*/\1/p' "$log" | tail -1)
  after=$(ls "$build/findings" | grep -c "^$reader-" || true)
  printf '%-16s%14s%10s%10s%10s\n' "$reader" "${executions:-?}" "${edges:-?}" \
    "$(ls "$found" | wc -l)" $((after - before))
  if [[ $code != 0 ]]; then
    failed=1
    printf '%s: exit code %s; the end of %s:\n' "$reader" "$code" "$log" >&2
    tail -40 "$log" >&2
  fi
done
exit "$failed"
