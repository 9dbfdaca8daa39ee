#!/usr/bin/env bash
# Builds llama.cpp's llama-bench and llama-quantize, and llama_logits.cpp, for this machine from the source distribution of
# the Python package that contains it. It takes about ten minutes on two cores.
#
#   bench/peers/build_llama_cpp.sh FOLDER
#
# Leaves FOLDER/bin/llama-bench, llama-quantize and llama-logits, and FOLDER/source (which has
# convert_hf_to_gguf.py); does nothing if they exist. PYTHON names the Python whose pip is used,
# JOBS the number of compiler processes.
set -euo pipefail

package=llama-cpp-python==0.3.36
[[ $# == 1 ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
python=${PYTHON:-python3}

if [[ ! -d $folder/source ]]; then
  "$python" -m pip download -qq --disable-pip-version-check --no-deps \
    --no-binary llama-cpp-python -d "$folder" "$package"
  unpacked=$(mktemp -d -p "$folder")
  tar -xzf "$folder"/llama_cpp_python-*.tar.gz -C "$unpacked" --strip-components=1
  mv "$unpacked/vendor/llama.cpp" "$folder/source"
  rm -r "$unpacked"
  # GCC 12 does not know that _tile_loadconfig reads all of its argument, and drops the stores to it:
  # llama.cpp then crashes on processors with AMX.
  sed -i 's|^\( *\)_tile_loadconfig(&tc);|\1__asm__ volatile("" : : "r"(\&tc) : "memory");\n&|' \
    "$folder/source/ggml/src/ggml-cpu/amx/mmq.cpp"
fi

# GGML_NATIVE uses all instructions of this processor; OpenMP and tinyBLAS are on by default.
cmake -S "$folder/source" -B "$folder/build" -G Ninja -Wno-dev --log-level=WARNING \
  -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON -DLLAMA_OPENSSL=OFF \
  -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
  -DLLAMA_BUILD_APP=OFF -DLLAMA_USE_PREBUILT_UI=OFF >/dev/null
ninja -C "$folder/build" ${JOBS:+-j "$JOBS"} llama-bench llama-quantize
mkdir -p "$folder/bin"
ln -sf ../build/bin/llama-bench ../build/bin/llama-quantize "$folder/bin/"

logits=$folder/bin/llama-logits own=$(dirname "${BASH_SOURCE[0]}")/llama_logits.cpp
if [[ ! $logits -nt $own ]]; then
  g++ -std=c++17 -O2 -fopenmp -I"$folder/source/include" -I"$folder/source/ggml/include" "$own" \
    "$folder"/build/src/libllama.a "$folder"/build/ggml/src/lib{ggml,ggml-cpu,ggml-base}.a \
    -ldl -lpthread -o "$logits"
fi
