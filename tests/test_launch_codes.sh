#!/bin/sh
# test_launch_codes.sh ROOT COLDBENCH: what is right passes, each seeded fault is named, bad input is refused.
set -u
program=$(dirname "$2")/launch_codes faults=$(dirname "$2")/modules/faults.so
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
# expect STATUS WORDS ARGUMENTS...
expect() {
    want=$1 words=$2
    shift 2
    "$program" "$@" >"$scratch/said" 2>&1
    got=$?
    [ "$got" = "$want" ] && grep -qF -e "$words" "$scratch/said" && return
    echo "launch_codes $*: status $got, not $want, or it does not say: $words"
    sed 's/^/    /' "$scratch/said"
    failed=1
}
expect 0 "9 launches of small shapes, 0 wrong" cpu gemv_q4@act=q8 twin_copy alu_chain
for shape in 1x32 3x224 37x4192 517x288; do
    grep -qxF "ok    gemv_q4@act=q8 $shape" "$scratch/said" || { echo "not launched: gemv_q4@act=q8 $shape" && failed=1; }
done
# What goes over its array as often as it is told goes over it once.
expect 0 "ok    twin_read@passes=1 64" cpu twin_read
expect 0 "ok    twin_read@slices=1,passes=1/portable 64" cpu twin_read@slices=1/portable
expect 0 "gemv_q4@act=bf16,tokens=2/cuda_bulk" -l
# Neither a code twice nor one that is wrong on purpose: one of those ends the context of all after it.
seeded=$(grep '^fault_' "$scratch/said")
[ "$seeded" = "fault_scale/cuda_clean none" ] || { echo "of the seeded faults it lists: $seeded" && failed=1; }
twice=$(sort "$scratch/said" | uniq -d)
[ -z "$twice" ] || { echo "listed twice: $twice" && failed=1; }
for code in alu_chain/cuda chase peak_mma scratch_read stream_read twin_copy twin_read twin_write; do
    grep -q "^$code" "$scratch/said" || { echo "not listed: $code" && failed=1; }
done
expect 0 "4 launches of small shapes, 0 wrong" -k "$faults" cpu faults/clean
for row in unwritten_tail:never past_end:beside edits_weight:edited group_wrong:bound not_a_number:infinite fails:failed; do
    expect 1 "${row#*:}" -k "$faults" cpu "faults/${row%:*}"
done
expect 2 "unknown kernel 'nonsense'" cpu nonsense
expect 2 "usage" cpu
expect 0 "usage: launch_codes -l" --help
"$program" --help 2>/dev/null | grep -q "^Status: 0 all right" || { echo "--help: not on standard output" && failed=1; }
# full ARGUMENTS...: where the list or what was found is lost, the status says so.
full() {
    "$program" "$@" >/dev/full 2>"$scratch/said"
    got=$?
    [ "$got" = 5 ] && grep -qF "writing standard output: " "$scratch/said" && return
    echo "launch_codes $* >/dev/full: status $got, not 5, or it is not told:"
    sed 's/^/    /' "$scratch/said"
    failed=1
}
if [ -e /dev/full ]; then
    full -l
    full --help
    full cpu alu_chain
fi
expect 3 "device 'cuda:99'" cuda:99 alu_chain
exit $failed
