#!/usr/bin/env bash
# deb.sh SOURCE BUILD WORK: builds the Debian package of the tools, installs it into a root that has only
# Debian's essential packages, by the commands of the Dockerfile's last stage, and runs it there.
set -euo pipefail
source=$1 build=$2 work=$3/deb
skip() {
  echo "skipped: $*"
  exit 77
}
[[ $(id -u) == 0 ]] || skip "making a root of its own needs root"
for program in mmdebstrap dpkg-shlibdeps; do
  command -v $program >/dev/null || skip "$program is not there; tools/setup.sh --judges installs it"
done
rm -rf "$work"
mkdir -p "$work/in"
export TMPDIR=$work

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
cp -r "$source/examples/models/gemma3-kjv-1m" "$work/in/model"
cp "$source"/examples/01-your-own-block/block.mlir "$work/in"
{
  echo 'set -ex; mkdir /packages; cp /in/ctxc_*.deb /packages'
  python3 "$source/test/package/dockerfile.py" "$source" --last
  cat <<'END'
ctxc --version
su ctxc -c 'ctxc --help' >/dev/null
su ctxc -c 'ctxc check /in/block.mlir --graph /tmp/block.svg'
ctxc check /in/block.mlir
ctxc-opt --version
CTXC_KERNEL_CACHE=off ctxc verify /in/model --prompt 'And Joshua the son of Nun' --generate 3
END
} >"$work/in/checks"

suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
  [[ -s $file ]] && sources+=("$file")
done
mmdebstrap --quiet --mode=root --variant=apt --format=null \
  --customize-hook="touch '$work/root-made'" --customize-hook="copy-in '$work/in' /" \
  --customize-hook='chroot "$1" sh /in/checks' "$suite" - "${sources[@]}" >"$work/log" 2>&1 || {
  tail -n 40 "$work/log"
  [[ -e $work/root-made ]] || skip "no mirror of Debian can be reached"
  exit 1
}
grep -x 'verified: .*' "$work/log"
