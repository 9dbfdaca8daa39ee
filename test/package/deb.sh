#!/usr/bin/env bash
# deb.sh SOURCE BUILD WORK: builds the Debian package of the tools, installs it into a root that has only
# Debian's essential packages, by the commands of the Dockerfile's last stage, and runs it there.
set -euo pipefail
source=$1 build=$2 work=$3/deb
skip() {
  echo "skipped: $*"
  exit 77
}
command -v dpkg-shlibdeps >/dev/null || skip "dpkg-shlibdeps is not there; tools/setup.sh --judges installs it"
rm -rf "$work"
mkdir -p "$work/in"

# gzip is faster; users get the package with its default compression.
cpack --config "$build/CPackConfig.cmake" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$work/packages" >"$work/cpack.log" || {
  cat "$work/cpack.log" >&2
  exit 1
}
cp "$work"/packages/ctxc_*.deb "$work/in"
dpkg-deb --field "$work"/in/ctxc_*.deb
contents=$(dpkg-deb --contents "$work"/in/ctxc_*.deb)
for file in share/man/man1/ctxc-verify.1 share/bash-completion/completions/ctxc share/doc/ctxc/LICENSE \
  share/doc/ctxc/copyright; do
  grep -q "/usr/$file$" <<<"$contents" || {
    echo "the package has no /usr/$file" >&2
    exit 1
  }
done
cp "$source"/examples/01-your-own-block/block.mlir "$work/in"
(cd "$source" && cp -r --parents -t "$work/in" tools/{demo,common}.sh examples/models/gemma3-kjv-1m)
{
  echo 'set -ex; mkdir /packages; cp /in/ctxc_*.deb /packages'
  python3 "$source/test/package/dockerfile.py" "$source" --last
  cat <<'END'
ctxc --version
su ctxc -c 'ctxc --help' >/dev/null
su ctxc -c 'ctxc check /in/block.mlir --graph /tmp/block.svg'
ctxc check /in/block.mlir
ctxc-opt --version
CTXC_READY=1 CTXC_BUILD=/usr /in/tools/demo.sh
END
} >"$work/in/checks"

python3 "$source/test/newcomer/debian.py" "$work" --copy "$work/in:/in" 'sh /in/checks' >"$work/log" 2>&1 || {
  status=$?
  tail -n 40 "$work/log"
  exit $status
}
grep -Fx "$(grep '^text  ' "$source/README.md")" "$work/log"
grep -x 'verified: .*' "$work/log"
