# complete.sh SCRIPT WORD…: what bash offers for the last word, after SCRIPT was read.
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_ctxc
printf '<%s>\n' "${COMPREPLY[@]}"
