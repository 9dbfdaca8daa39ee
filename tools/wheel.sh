#!/usr/bin/env bash
# Makes a wheel of the Python package that needs nothing of the system but libc and libstdc++, as all of manylinux may: LLVM,
# MLIR and all other libraries are inside. It serves every Python from 3.11 on, on machines whose glibc is not older than this one's.
#
#   tools/wheel.sh [FOLDER]    FOLDER gets it (default: wheels in the build folder)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# -le 1 && ${1-} != -* ]] || fail "expected [FOLDER], found '$*'"
folder=$(realpath -m "${1:-$build/wheels}")
python=$build/python-tools/bin/python

if [[ $ready == 1 ]]; then
  cmake --build "$build" --target ctxc-python-alone >/dev/null
else
  "$root/tools/setup.sh" --python
  [[ -x $python ]] || fail "nanobind could not be installed; see the messages above"
  "$root/tools/build.sh" ctxc-python-alone
fi
work=$(mktemp -d "$build/wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --component python-alone --prefix "$work/stage" >"$work/log"
for package in libmlir-22-dev libomp-22-dev libsentencepiece0 libonig5 libutf8proc2 libzip4 zlib1g libzstd1 \
  liblld-22-dev libeigen3-dev libboost-dev libvulkan-dev libbz2-1.0 libssl3; do
  mkdir -p "$work/stage/ctxc/_programs/share/doc/$package"
  cp "/usr/share/doc/$package/copyright" "$work/stage/ctxc/_programs/share/doc/$package"
done
"$python" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$work/raw" "$root" \
  -Ccmake.source-dir=python/wheel -Ccmake.define.CTXC_STAGE="$work/stage" -Cbuild-dir="$work/build"
# Libraries that have no archive come in, and the name says which glibc it needs.
PATH=$build/python-tools/bin:$PATH "$python" -m auditwheel repair --wheel-dir "$work/whole" \
  "$work"/raw/ctxc-*.whl 2>"$work/log" || fail "$(<"$work/log")"
mkdir -p "$folder"
mv "$work"/whole/ctxc-*.whl "$folder"
ls -sh "$folder"/ctxc-*.whl
