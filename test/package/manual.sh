#!/usr/bin/env bash
# manual.sh BUILD WORK: `cmake --install` puts a man page for each command where man finds it, which groff
# sets without a warning and which has every option of --help; and completion where shells find it.
set -euo pipefail
build=$1 work=$2/manual
rm -rf "$work"
cmake --install "$build" --prefix "$work" --component tools >/dev/null
ctxc=$build/bin/ctxc failures=0
complain() {
  echo "$*"
  failures=$((failures + 1))
}

for shell in bash zsh fish; do
  declare -A places=([bash]=bash-completion/completions/ctxc [zsh]=zsh/vendor-completions/_ctxc
    [fish]=fish/vendor_completions.d/ctxc.fish)
  "$ctxc" completion $shell | cmp - "$work/share/${places[$shell]}" || complain "$shell: stale"
  if command -v $shell >/dev/null; then
    $shell -n "$work/share/${places[$shell]}" || complain "$shell cannot read its completion"
  fi
done

command -v groff >/dev/null || {
  echo "skipped: groff is not there, which sets man pages"
  exit 77
}
commands=$("$ctxc" --help | sed -n '/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
[[ $(wc -l <<<"$commands") -ge 10 ]] || complain "ctxc --help lists too few commands: $commands"
for command in $commands; do
  page=$work/share/man/man1/ctxc-$command.1
  [[ -f $page ]] || {
    complain "$page is not there"
    continue
  }
  warnings=$(groff -man -Tutf8 -Kutf8 -ww -z "$page" 2>&1)
  [[ -z $warnings ]] || complain "$warnings"
  text=$(groff -man -Tutf8 -Kutf8 "$page" | sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g')
  while read -r option; do
    grep -qE -- "^ +$option" <<<"$text" || complain "ctxc-$command(1) has no $option"
  done < <("$ctxc" "$command" --help | sed -n '/^options:/,/^examples:/s/^  \(-[^ ]*\).*/\1/p' |
    sed 's/[][*.]/\\&/g')
done
groff -man -Tutf8 -Kutf8 -ww -z "$work/share/man/man1/ctxc.1" 2>&1 | grep . && complain "ctxc(1) has warnings"
[[ $failures == 0 ]]
