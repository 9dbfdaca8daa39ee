#!/usr/bin/env bash
# Makes a site of all pages, of the notebooks and of the Python package's reference, and checks its links.
#
#   tools/docs.sh [FOLDER]    FOLDER gets it (default: site in the build folder); open FOLDER/index.html
#   tools/docs.sh --tools     only installs what makes it, beside the judges' packages
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# -le 1 && (${1-} != -* || $1 == --tools) ]] || fail "expected [FOLDER] or --tools, found '$*'"
tools=$judges/docs
mkdir -p "$build" "$judges"
[[ -x $tools/bin/python ]] || python3 -m venv "$tools"
"$tools/bin/python" -m pip install -qq --disable-pip-version-check -r "$root/tools/requirements-docs.txt"
[[ ${1-} != --tools ]] || exit 0
site=$(realpath -m "${1:-$build/site}")
work=$(mktemp -d "$build/docs.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$tools/bin/python" "$root/tools/docs/stage.py" "$root" "$work"
"$tools/bin/python" -m sphinx -q -W --keep-going -j "$jobs" -c "$root/tools/docs" -D autoapi_dirs="$work/python/ctxc" -d "$work/doctrees" \
  "$work/pages" "$work/site"
"$tools/bin/python" "$root/tools/docs/check_site.py" "$work/site"
rm -rf "$site"
mv "$work/site" "$site"
say "$site/index.html"
