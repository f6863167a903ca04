#!/bin/sh
# Gates builds of one kernel module, tests/modules/gated.c: RUNS rebuilds that change nothing but the
# build id, then PLANTED of a head that does 103 passes where the base does 100. Prints how often each
# exit status came, and the wall seconds of the whole command.
#
#   gate-table.sh [--load] RUNS PLANTED      COLDBENCH names the binary, default coldbench
#
# --load: one generator a core while it runs, that computes and streams by turns.
set -eu
coldbench=${COLDBENCH:-coldbench}
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/load.sh"
build() { # passes, number, file
    ${CC:-cc} -O3 -shared -fPIC -I "$root/include" -DGATED_PASSES="$1" \
        -Wl,--build-id=0x"$(printf %040x "$2")" -o "$3" "$root/tests/modules/gated.c"
}
build 100 1 "$work/base.so"
gates() { # runs, passes of the head, what
    for run in $(seq "$1"); do
        build "$2" $((run + 1)) "$work/head.so"
        start=$(date +%s%N)
        status=0
        "$coldbench" gate --base "$work/base.so" --head "$work/head.so" --kernel gated \
            --shape 1024 --cache warm --threads 1 -q >"$work/out" 2>&1 || status=$?
        end=$(date +%s%N)
        [ "$status" -le 1 ] || cat "$work/out" >&2
        echo "$(((end - start) / 1000000)) $status"
    done >"$work/runs"
    sort -n "$work/runs" | awk -v load="$load" -v what="$3" '
        { ms[NR] = $1; count[$2]++ }
        END {
            printf "%-6s %4d %s:", load, NR, what
            for (status in count) printf " %d status %s,", count[status], status
            printf " median %.2f s, 90 %% %.2f s, largest %.2f s\n", ms[int((NR + 1) / 2)] / 1000,
                ms[int(NR * 0.9 + 0.5)] / 1000, ms[NR] / 1000
        }'
}
[ "$1" -eq 0 ] || gates "$1" 100 "rebuilds that change nothing"
[ "$2" -eq 0 ] || gates "$2" 103 "heads with 3 % more passes"
