#!/usr/bin/env bash
# wheel.sh SOURCE BUILD WORK JUDGE: makes a wheel (tools/wheel.sh), installs it into an empty virtual environment, in an empty
# directory, and runs the package's tests there, with a PATH of that environment and of a few commands of the system. Every
# night those of live modules and of ctxc.torch too, with the packages of JUDGE, a Python of the same version.
set -euo pipefail
source=$1 build=$2 work=$3 judge=$4
skip() {
  echo "skipped: $*"
  exit 77
}
rm -rf "$work"
mkdir -p "$work/empty"
CTXC_BUILD=$build CTXC_READY=1 "$source/tools/wheel.sh" "$work/wheels"
wheel=$(echo "$work"/wheels/ctxc-*.whl)
ls -s --block-size=1000000 "$wheel" | awk '{ print "wheel: " $1 " MB" }'
[[ $(stat -c %s "$wheel") -le 120000000 ]] || {
  echo "expected at most 120 MB" >&2
  exit 1
}
python3 -m venv "$work/venv"
python=$work/venv/bin/python
start=$(date +%s%N)
"$python" -m pip install -q --disable-pip-version-check "$wheel" >"$work/log" 2>&1 || {
  cat "$work/log"
  grep -q "No matching distribution" "$work/log" && skip "numpy and nanobind-backend cannot be had"
  exit 1
}
echo "install: $((($(date +%s%N) - start) / 1000000)) ms"
cd "$work/empty"
mkdir "$work/bin"
for program in sh cat ls env head grep; do ln -s "$(command -v $program)" "$work/bin"; done
export PATH=$work/venv/bin:$work/bin
unset PYTHONPATH
"$python" -c 'import time; t = time.perf_counter(); import ctxc; print("import: %.2f s" % (time.perf_counter() - t))'
ctxc --version
ctxc-opt --version | grep LLVM
ctxc-lsp-server --help >"$work/help"
# It exports with the Python that it is installed in, which has no torch.
ctxc check --transformers llama 2>&1 | grep -F "torch is not installed for $python; expected a Python with torch"
"$python" - <<'END'
import ctxc, pathlib
maps = pathlib.Path("/proc/self/maps").read_text()
found = {line.split()[-1] for line in maps.splitlines() if "libLLVM" in line or "libMLIR" in line}
assert not found, f"loaded from elsewhere: {found}"
END
"$python" "$source/test/python/core_test.py" "$work/venv/bin/ctxc" "$source"
if [[ ${CTXC_KERNEL_OPT:-0} == 3 ]]; then
  "$judge" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$(echo "$work"/venv/lib/python3.*/site-packages)/judges.pth"
  "$python" -c 'import ctxc, sys; assert ctxc.__file__.startswith(sys.prefix), ctxc.__file__'
  for test in live torch; do "$python" "$source/test/python/${test}_test.py" "$source/test/goldens"; done
fi
[[ -z $(ls -A) ]] || {
  echo "left in the working directory: $(ls -A)" >&2
  exit 1
}
