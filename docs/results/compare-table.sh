#!/bin/sh
# Runs `coldbench compare ARGUMENTS` many times and prints one line: how often each decision fell, and
# the wall seconds of the whole command.
#
#   compare-table.sh [--load] RUNS ARGUMENTS...         COLDBENCH names the binary, default coldbench
#
# --load: one generator a core while it runs, that computes and streams by turns.
set -eu
coldbench=${COLDBENCH:-coldbench}
. "$(dirname "$0")/load.sh"
runs=$1
shift
for run in $(seq "$runs"); do
    start=$(date +%s%N)
    "$coldbench" compare "$@" --json "$work/record" -q >"$work/out" 2>&1 || true
    end=$(date +%s%N)
    decision=$(sed -n 's/.*"decision": *"\([a-z]*\)".*/\1/p' "$work/record" | head -n 1)
    echo "$(((end - start) / 1000000)) ${decision:-failed}"
    [ -n "$decision" ] || cat "$work/out" >&2
    rm -f "$work/record"
done >"$work/runs"
sort -n "$work/runs" | awk -v load="$load" -v what="$*" '
    { ms[NR] = $1; count[$2]++ }
    END {
        printf "%-6s %4d runs:", load, NR
        n = split("tie slower faster inconclusive incomparable unstable failed", words, " ")
        for (i = 1; i <= n; i++)
            if (count[words[i]]) printf " %d %s,", count[words[i]], words[i]
        printf " median %.2f s, 90 %% %.2f s, largest %.2f s: %s\n", ms[int((NR + 1) / 2)] / 1000,
            ms[int(NR * 0.9 + 0.5)] / 1000, ms[NR] / 1000, what
    }'
