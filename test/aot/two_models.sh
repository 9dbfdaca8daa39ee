#!/bin/sh
# two_models.sh CTXC CC MODEL PROGRAM NUMERICS WORK: compiles a model twice, under two prefixes, and
# links both.
set -e
ctxc=$1 cc=$2 model=$3 program=$4 numerics=$5 work=$6
mkdir -p "$work"
"$ctxc" compile "$model" --emit=obj --prefix=first -o "$work/first.o"
"$ctxc" compile "$model" --emit=obj --prefix=second -o "$work/second.o"
"$cc" -std=c11 -Wall -Wextra -Werror -DD=54 -DVOCABULARY=97 -I "$work" "$program" \
  "$work/first.o" "$work/second.o" "$numerics" -lm -o "$work/two_models"
exec "$work/two_models"
