#!/bin/sh
# test_cuda_cli.sh ROOT COLDBENCH: a GPU machine with a driver and no NVRTC, as a person meets it. The driver
# is the stub (stub_cuda.h), on which no kernel does anything: what is looked at is what is said.
set -u

program=${2:-}
stub=$(dirname "${program:-/}")/tests/stub/libcuda.so.1
if [ ! -e "$stub" ]; then
    echo "no program or no stub of a driver to test with" >&2
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/driver"
cp "$stub" "$scratch/driver"
export LD_LIBRARY_PATH="$scratch/driver" XDG_DATA_HOME="$scratch" XDG_CACHE_HOME="$scratch"
export COLDBENCH_NVRTC=/absent/libnvrtc.so
failed=0

# says FILE PART
says() {
    grep -qF -e "$2" "$scratch/$1" && return
    echo "standard $1 does not say: $2"
    sed 's/^/    /' "$scratch/out" "$scratch/err"
    failed=1
}

run() {
    "$program" run --device cuda:0 --shape 256x256 --cache warm --submit batched --budget 2 \
        --json "$scratch/record" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
}

# Default constants are compiled, so the stub runs them, and that they write nothing is found.
run gemv_q4@act=bf16
[ "$status" = 1 ] || { echo "gemv_q4@act=bf16: status $status, not 1"; failed=1; }
named="embedded PTX, by the driver (CUDA 13.0): COLDBENCH_NVRTC: cannot load library '/absent/libnvrtc.so'"
says out "code: $named"
says out 'wrong'
says record "\"code\": \"$named"

# Others are not: one line, and no table of what was not measured.
run gemv_q4/cuda:block_rows=32
[ "$status" = 3 ] || { echo "block_rows=32: status $status, not 3"; failed=1; }
says err 'gemv_q4 with these constants is not among the code that came compiled: COLDBENCH_NVRTC: cannot'
says record '"results": []'
[ "$(grep -c 'came compiled' "$scratch/err")" = 1 ] || { echo 'said more than once'; failed=1; }
if [ -s "$scratch/out" ]; then
    echo 'a table of nothing:'
    cat "$scratch/out"
    failed=1
fi
exit $failed
