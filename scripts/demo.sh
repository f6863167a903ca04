#!/bin/sh
# demo.sh: what this machine's memory can do, then a 4-bit matrix-vector kernel at the shapes of a model.
set -u
cd "$(dirname "$0")/.." || exit 1
sh scripts/need.sh build || exit
sh scripts/build.sh release coldbench || exit
coldbench=build/release/coldbench

printf 'coldbench: measuring the memory (coldbench probe --quick)\n' >&2
# Status 4: answered, but some of it not surely enough; the table says which.
answered()
{
    "$@"
    status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 4 ] || exit "$status"
}
answered "$coldbench" probe --quick
printf 'coldbench: measuring gemv_q4 (coldbench run gemv_q4 --shapes llama-3-8b)\n' >&2
answered "$coldbench" run gemv_q4 --shapes llama-3-8b
