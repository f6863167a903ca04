#!/bin/sh
# test_cuda_verbs.sh ROOT COLDBENCH: every verb on CUDA devices that are not there, cannot be used, or are stubs
# (stub_cuda.h): one line, status 3; cuda:all; and as far as a stub goes a kernel measured, and two builds of it.
set -u

program=${2:-}
if [ -z "$program" ]; then
    echo "no program to test" >&2
    exit 77
fi
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")
stub=$(dirname "$program")/tests/stub
modules=$(dirname "$program")/tests/modules
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
export XDG_DATA_HOME="$scratch/data" XDG_CACHE_HOME="$scratch/cache" TMPDIR="$scratch/tmp"
unset COLDBENCH_NVRTC CUDA_HOME CUDA_PATH
mkdir "$TMPDIR" "$scratch/none" "$scratch/later" "$scratch/toolkit"
ln -s "$stub/libcuda.so.1" "$scratch/later/libcuda.so.1"

fault() {
    echo "$*"
    sed 's/^/    /' "$scratch/out" "$scratch/err"
    failed=1
}

run() {
    "$program" "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
}

says() {
    grep -qF -e "$1" "$scratch/out" "$scratch/err" || fault "$verb: nothing says: $1"
}

# ---- what keeps a device from being used, and how each verb says so ----

# verbs: the arguments of each, a line each; verbs_compiled: of those that need a compiler, for code of one's own.
verbs_compiled() {
    cat <<EOF
run --kernel $modules/scaled_base.so scale_add --shape 4096 --cache warm --threads 4
compare --kernel $modules/scaled_base.so scale_add scale_add:blocks=4 --shape 4096 --cache warm --threads 4
gate --base $modules/scaled_base.so --head $modules/scaled_same.so --shape 4096 --cache warm --threads 4
EOF
}
verbs() {
    cat <<EOF
run stream_read --shape 64KiB --cache warm
compare stream_read stream_read --shape 64KiB --cache warm
gate --base $modules/scaled_base.so --head $modules/scaled_same.so --shape 4096
probe --quick
model show
selftest --quick
EOF
}

# refused DEVICE WORDS [LIST]: every verb, on DEVICE, prints one line, which has WORDS, and nothing else; status 3.
refused() {
    "${3:-verbs}" >"$scratch/verbs"
    while IFS= read -r verb; do
        rm -rf "$XDG_DATA_HOME"
        # shellcheck disable=SC2086 # of words
        run $verb --device "$1"
        verb="$verb --device $1"
        [ "$got" = 3 ] || fault "$verb: status $got, not 3"
        [ "$(wc -l <"$scratch/err")" = 1 ] || fault "$verb: not one line"
        # What is found out while it is measured is told by the table too.
        [ -s "$scratch/out" ] && [ "${3:-verbs}" = verbs ] && fault "$verb: prints"
        case $verb in
        # Of this one it is answer enough that there is no model, whatever else keeps the device from use.
        model*) grep -qF -e "$2" -e "there is no model" "$scratch/err" || fault "$verb: nothing says: $2" ;;
        *) says "$2" ;;
        esac
    done <"$scratch/verbs"
}

export LD_LIBRARY_PATH="$scratch/none"
if ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 '; then
    echo "a driver is here: what is said without one is not tried"
else
    refused cuda:0 "no NVIDIA driver: cannot load library 'libcuda.so.1'"
    refused cuda:all "device 'cuda:all': no NVIDIA driver"
fi
# condition VARIABLE=VALUE DEVICE WORDS [LIST]: refused() with that in the environment.
condition() {
    # shellcheck disable=SC2163 # what it names
    export "$1"
    refused "$2" "$3" "${4:-verbs}"
    unset "${1%%=*}"
}
export LD_LIBRARY_PATH="$stub/old:$stub"
refused cuda:0 "has no cuEventRecordWithFlags: the NVIDIA driver is too old"
export LD_LIBRARY_PATH="$stub"
condition STUB_CUDA_FAIL=cuInit:34 cuda:0 "CUDA_ERROR_STUB_LIBRARY: CUDA driver is a stub library"
condition STUB_CUDA_DEVICES=0 cuda:0 "no CUDA-capable device is detected"
condition STUB_CUDA_DEVICES=0 cuda:all "no CUDA-capable device is detected"
condition STUB_CUDA_DEVICES=-1 cuda:0 "the driver shows no device"
condition STUB_CUDA_DEVICES=-1 cuda:all "device 'cuda:all': the driver shows no device"
condition STUB_CUDA_DEVICES=2 cuda:7 "device 'cuda:7': the driver shows 2 devices"
condition STUB_CUDA_DEVICES=1 cuda:1 "device 'cuda:1': the driver shows 1 device"
condition STUB_CUDA_MODE=2 cuda:0 "its compute mode is prohibited"
condition STUB_CUDA_MODE=3 cuda:0 "its compute mode is exclusive to one process"
condition STUB_CUDA_FAIL=cuDevicePrimaryCtxRetain:46 cuda:0 "cuDevicePrimaryCtxRetain: CUDA"
condition STUB_CUDA_VERSION=11080 cuda:0 "NVRTC"
condition COLDBENCH_NVRTC="$scratch/absent.so" cuda:0 "absent.so" verbs_compiled
condition STUB_CUDA_VERSION=11080 cuda:0 "NVRTC" verbs_compiled

# older WORDS ARGUMENTS...: code for a later device than this one of 7.0 is told as such.
older() {
    words=$1
    shift
    verb=$*
    STUB_CUDA_CAPABILITY=70 "$program" "$@" --device cuda:0 >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" = 3 ] || fault "$verb: status $got, not 3"
    says "$words"
}
for variant in scale_add scale_add/cuda; do
    older "implementation 'cuda' of scale_add needs compute capability 7.5; this device has 7.0" \
        run --kernel "$modules/scaled_base.so" $variant --shape 4096 --cache warm
done

# ---- a stub that computes ----

export STUB_CUDA_KERNELS="$stub/run_kernels.so" STUB_CUDA_LAUNCH_NS=20000
rm -rf "$XDG_DATA_HOME"
scaled="--kernel $modules/scaled_base.so scale_add --shape 65536 --threads 4 --seed 5 --budget 4"

# ends STATUS ARGUMENTS...: a verb ends with it.
ends() {
    want=$1
    shift
    verb=$*
    run "$@"
    [ "$got" = "$want" ] || fault "$verb: status $got, not $want"
}

# Time is the stub's, and means nothing; what is right and what is wrong is what a GPU's would be.
# shellcheck disable=SC2086 # of words
run run $scaled --device cuda:0 --cache warm --submit batched --json "$scratch/run.json" -v
verb="run of the example"
[ "$got" = 0 ] || [ "$got" = 4 ] || fault "$verb: status $got"
says "written      pass: every element differs"
says "inputs       pass: the digest of all inputs is what it was"
says "of 4 more shapes too, against f64"
for key in '"stages": {' '"shapes_s": ' '"telemetry": "sm 1980 of 1980 MHz, memory 3201 of 3201 MHz, 123 W, 41 C' \
    '"startup_s": ' '"measure_s": ' '"clock": "CUDA events"'; do
    grep -qF -e "$key" "$scratch/run.json" || fault "$verb: the record has no $key"
done

ends 0 gate --base "$modules/scaled_base.so" --head "$modules/scaled_base.so" --shape 65536 --device cuda:0
says "nothing to compare"
ends 0 gate --base "$modules/scaled_base.so" --head "$modules/scaled_same.so" --shape 65536 --device cuda:0 \
    --threads 4 --cache warm --json "$scratch/gate.json"
says "tie            scale_add 65536 [warm]"
ends 1 gate --base "$modules/scaled_base.so" --head "$modules/scaled_wrong.so" --shape 65536 --device cuda:0 \
    --threads 4 --cache warm
says "wrong          scale_add 65536"

# A clock that cannot be read says nothing of the kernel.
# shellcheck disable=SC2086 # of words
STUB_CUDA_FAIL=cuEventElapsedTime:1 "$program" run $scaled --device cuda:0 --cache warm --submit batched \
    >"$scratch/out" 2>"$scratch/err"
got=$?
verb="run without a clock"
[ "$got" = 5 ] || fault "$verb: status $got, not 5"
says "the time of a batch cannot be read: cuEventElapsedTime: CUDA_ERROR_INVALID_VALUE"
grep -q 'wrong' "$scratch/out" && fault "$verb: the kernel is blamed"

# Nor does memory that the device lacks for a launch; a launch that fails does.
# shellcheck disable=SC2086 # of words
for submit in batched solo; do
    [ $submit = solo ] && call=cuLaunchKernel || call=cuGraphLaunch
    export STUB_CUDA_FAIL=$call:2
    ends 3 run $scaled --device cuda:0 --cache warm --submit $submit
    says "$call: CUDA_ERROR_OUT_OF_MEMORY"
    grep -q 'wrong' "$scratch/out" && fault "$verb: the kernel is blamed"
    export STUB_CUDA_FAIL=$call:719@60
    ends 1 run $scaled --device cuda:0 --cache warm --submit $submit
    says "$call: CUDA_ERROR_LAUNCH_FAILED"
done
export STUB_CUDA_FAIL=cuGraphLaunch:2
# shellcheck disable=SC2086
ends 3 compare $scaled scale_add --device cuda:0 --cache warm
grep -q 'wrong' "$scratch/out" && fault "$verb: the kernel is blamed"
ends 3 gate --base "$modules/scaled_base.so" --head "$modules/scaled_same.so" --shape 65536 --device cuda:0 \
    --threads 4 --cache warm
grep -q 'wrong' "$scratch/out" && fault "$verb: the kernel is blamed"
unset STUB_CUDA_FAIL

# ---- what the driver says before a launch, or of time, is not the doing of a kernel ----

for row in cuDeviceGetAttribute:1%"does not say its compute capability" cuDevicePrimaryCtxRetain:719%cuDevicePrimaryCtxRetain \
    cuStreamCreate:719%cuStreamCreate cuDeviceGetCount:719%cuDeviceGetCount; do
    export STUB_CUDA_FAIL="${row%%%*}"
    # shellcheck disable=SC2086 # of words
    ends 3 run $scaled --device cuda:0 --cache warm --submit solo
    says "${row#*%}"
    grep -q wrong "$scratch/out" && fault "$STUB_CUDA_FAIL: the kernel is blamed"
done
unset STUB_CUDA_FAIL
export STUB_CUDA_LAUNCH_NS=0
# shellcheck disable=SC2086 # of words
ends 3 run $scaled --device cuda:0 --cache warm --submit batched -v
says "its events are 0 ms apart"
export STUB_CUDA_LAUNCH_NS=20000

# ---- a cache that is kept from evicting what rotates ----

ends 4 run --kernel "$modules/scaled_keeps.so" scale_add --shape 65536 --threads 4 --seed 5 --device cuda:0 \
    --cache cold --submit solo
says "contaminated"
says "1048576 bytes of L2 are set aside for lines that stay"

# shellcheck disable=SC2086 # of words
{
    export STUB_CUDA_PERSISTING=4194304
    "$program" run $scaled --device cuda:0 --cache cold --submit solo --json "$scratch/set-aside.json" >"$scratch/out" 2>&1
    grep -q '"telemetry": ".*held back by: .*; 4194304 bytes of L2 allowed for lines that stay"' "$scratch/set-aside.json" ||
        fault "run: L2 that was set aside from the start is not on record"
    unset STUB_CUDA_PERSISTING
    export STUB_CUDA_FAIL=cuCtxGetLimit:1
    ends 4 run $scaled --device cuda:0 --cache cold --submit solo -v
    grep -q '^ *cold  *pass' "$scratch/out" && fault "$verb: cold, of a cache that cannot be asked"
    ends 4 run $scaled --device cuda:0 --cache cold --submit batched
    says "unknown"
    unset STUB_CUDA_FAIL
}

# ---- tunables that have no geometry ----

ends 2 run gemv_q4/cuda:blocks=8,warps=16 --shape 64x64 --device cuda:0 --cache warm
says "its geometry() refuses it with "
says "blocks=8"

# ---- selftest: each fault by name ----

ends 0 selftest --only launches --device cuda:0 --json "$scratch/selftest.json"
for fault in "clean launch         none         1 of 1" "rows never written   written      1 of 1" \
    "short grid           written      1 of 1" "write past the end   guards       1 of 1" \
    "write before it      guards       1 of 1" "wrong value          bound        1 of 1" \
    "fewer bits           bound        1 of 1" "not a number         finite       1 of 1" \
    "edited input         inputs       1 of 1" "failed launch        launch       1 of 1"; do
    says "$fault"
done

# ---- a probe that measured no size: the stub's kernels of a probe do nothing ----

place="$XDG_DATA_HOME/coldbench/models"
rm -rf "$place"
ends 4 probe --quick --budget 5 --device cuda:0
says "the model is not stored: no size was measured"
grep -q '^  drive  *pass' "$scratch/out" && fault "$verb: drive passes"
grep -q '^  solo .*\[' "$scratch/out" || fault "$verb: no floor"
[ -z "$(ls "$place" 2>/dev/null)" ] || fault "$verb: a model is stored"
ends 4 probe --quick --budget 5 --device cuda:0 --model "$scratch/empty.json" -q
[ ! -e "$scratch/empty.json" ] || fault "$verb: a model is stored"

# ---- every device ----

export STUB_CUDA_DEVICES=2
# shellcheck disable=SC2086 # of words
ends 0 compare $scaled scale_add --device cuda:all --cache warm --json "$scratch/all.json" --csv "$scratch/all.csv"
says "cuda:0 (1 of 2)"
says "cuda:1 (2 of 2)"
[ "$(grep -c '"kind": "compare"' "$scratch/all.json")" = 2 ] || fault "$verb: not two records"
for device in cuda:0 cuda:1; do
    grep -qF "\"device\": \"$device\"" "$scratch/all.json" || fault "$verb: no record of $device"
done
[ "$(head -n 1 "$scratch/all.json")$(tail -n 1 "$scratch/all.json")" = "[]" ] || fault "$verb: no array"
[ "$(head -n 1 "$scratch/all.csv" | cut -d, -f1)" = device ] || fault "$verb: the CSV has no device"
grep -q '^cuda:0,' "$scratch/all.csv" && grep -q '^cuda:1,' "$scratch/all.csv" || fault "$verb: the CSV lacks one"
[ "$(grep -c '^device,' "$scratch/all.csv")" = 1 ] || fault "$verb: not one head"
ends 2 gate --base "$modules/scaled_base.so" --head "$modules/scaled_same.so" --shape 65536 --device cuda:all \
    --markdown "$scratch/all.md"
says "--markdown or --json-benchmark is for one device, and 2 were asked for"
ends 2 probe --quick --device cuda:all --model "$scratch/model"
says "--model FILE is for one device"
export STUB_CUDA_DEVICES=1
# shellcheck disable=SC2086
ends 0 compare $scaled scale_add --device cuda:all --cache warm
says "cuda:0 (1 of 1)"
exit $failed
