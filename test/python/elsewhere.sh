#!/usr/bin/env bash
# elsewhere.sh SOURCE WORK WHEEL: installs a wheel on a Debian that was never seen by the build: the release after this
# one's, with its own Python and nothing of LLVM; and runs the package's tests there.
set -euo pipefail
source=$1 work=$2 wheel=$(realpath "$3")
skip() {
  echo "skipped: $*"
  exit 77
}
suite=trixie version=3.13
rm -rf "$work"
mkdir -p "$work/in/wheels" "$work/in/source"
python3 -m pip download -q --disable-pip-version-check --python-version $version --only-binary=:all: -d "$work/in/wheels" \
  'numpy>=1.26' 'nanobind-backend>=1.0,<2' || skip "numpy for Python $version cannot be had"
cp "$wheel" "$work/in/wheels"
cp -r --parents -t "$work/in/source" "$source"/{README.md,docs/python.md,tools/demo.sh,tools/common.sh,examples/models/gemma3-kjv-1m,test/goldens,test/python}
cat >"$work/in/checks" <<END
set -ex
python3 -m venv /venv
/venv/bin/pip install -q --no-index --find-links /in/wheels ctxc
mkdir /empty && cd /empty
export PATH=/venv/bin:/usr/bin:/bin
python --version
ctxc --version
ctxc-opt --version
ctxc-lsp-server --help >/dev/null
python /in/source$source/test/python/core_test.py /venv/bin/ctxc /in/source$source
CTXC_READY=1 CTXC_BUILD=/venv /in/source$source/tools/demo.sh
echo "the package works on $suite"
END
python3 "$source/test/newcomer/debian.py" "$work" --suite $suite --include python3-venv --copy "$work/in:/in" \
  'sh /in/checks' >"$work/log" 2>&1 || {
  status=$?
  tail -n 60 "$work/log"
  exit $status
}
grep -E '^(Python|Ran|ctxc|the package)' "$work/log"
grep -Fx "$(grep '^text  ' "$source/README.md")" "$work/log"
