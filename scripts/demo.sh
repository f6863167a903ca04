#!/bin/sh
# demo.sh: what this machine's memory can do, then a 4-bit matrix-vector kernel at the shapes of a model.
set -u
cd "$(dirname "$0")/.." || exit 1
sh scripts/need.sh build || exit
sh scripts/build.sh release coldbench || exit
coldbench=build/release/coldbench

printf 'coldbench: measuring the memory (coldbench probe --quick)\n' >&2
"$coldbench" probe --quick || exit
printf 'coldbench: measuring gemv_q4 (coldbench run gemv_q4 --shapes llama-3-8b)\n' >&2
exec "$coldbench" run gemv_q4 --shapes llama-3-8b
