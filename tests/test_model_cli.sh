#!/bin/sh
# test_model_cli.sh ROOT COLDBENCH: the verb `model` and the example that asks the library, on models of the
# scripted device under tests/fixtures/models.
set -u

program=${2:-}
if [ -z "$program" ]; then
    echo "no program to test" >&2
    exit 77
fi
models=$1/tests/fixtures/models
tile=$(dirname "$program")/tests/example_tile
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
export XDG_DATA_HOME="$scratch/data"

fault() {
    echo "$*"
    sed 's/^/    /' "$scratch/out" "$scratch/err"
    failed=1
}

# expect STATUS PART... -- COMMAND...: the command ends with STATUS, and each PART is in what it wrote.
expect() {
    want=$1
    shift
    : >"$scratch/parts"
    while [ "$1" != -- ]; do
        printf '%s\n' "$1" >>"$scratch/parts"
        shift
    done
    shift
    "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" = "$want" ] || fault "$*: status $got, not $want"
    while IFS= read -r part; do
        cat "$scratch/out" "$scratch/err" | grep -qF -e "$part" || fault "$*: nothing says: $part"
    done <"$scratch/parts"
}

# ask STATUS LINE ARGUMENTS...: the fixture answers with just that line on standard output, or refuses with a
# message that holds it.
ask() {
    want=$1
    line=$2
    shift 2
    expect "$want" "$line" -- "$program" model --device fake --model "$models/fake.json" "$@"
    [ -s "$scratch/err" ] || [ "$(cat "$scratch/out")" = "$line" ] || fault "model $*: not: $line"
}

# ---- answers ----
ask 0 'yes knee 33554432 bytes [16777216, 67108864] ok (16 MiB is at or below the last knee before memory, by bandwidth)' resident 16MiB
ask 0 'maybe knee 33554432 bytes [16777216, 67108864] ok (24 MiB is within the last knee before memory, by bandwidth)' resident 24MiB
ask 0 'no knee 33554432 bytes [16777216, 67108864] ok (64 MiB is at or above the end of the last knee before memory, by latency)' resident 64MiB --pattern random
ask 0 'no knee 33554432 bytes [16777216, 67108864] ok (8589934592 GiB is at or above the end of the last knee before memory, by bandwidth)' resident 9223372036854775807 --workers 1
ask 0 '240.0 GB/s [235.2, 244.8] ok (read, 2 workers, 1 MiB in all)' bandwidth 1MiB
ask 0 '240.0 GB/s [235.2, 244.8] ok (read, 2 workers, 1 MiB in all)' read_bandwidth 1MiB
ask 0 '60.00 GB/s [58.80, 61.20] ok (write, 1 worker, 512 KiB in all)' write_bandwidth 512KiB --workers 1
ask 0 '180.0 GB/s [176.4, 183.6] ok (copy, 2 workers, 1 MiB in all)' copy_bandwidth 1MiB
ask 0 '26.00 GB/s [25.48, 26.52] ok (copy_nt, 2 workers, 1 MiB in all)' bandwidth 1MiB --mix copy_nt
ask 0 '92.00 ns [91.08, 92.92] ok (a dependent load, in random order over 256 MiB)' latency 256MiB
ask 0 '2097152 bytes [1048576, 4194304] ok (2 MiB, the knee by bandwidth; the system says 2 MiB)' capacity L2
ask 0 '65536 bytes [32768, 131072] ok (64 KiB, the knee by latency; the system says 32 KiB)' capacity 1 --pattern random
ask 0 '33554432 bytes [16777216, 67108864] ok (32 MiB, the knee by bandwidth)' capacity last
ask 0 '33554432 bytes [33554432, 33554432] ok (32 MiB, what the system says, not what was measured)' nominal last
ask 0 '65536 bytes [65536, 65536] ok (64 KiB, what the system says, not what was measured)' nominal l1
ask 0 '8.000 x [7.686, 8.327] ok (1 MiB read again and again over all of 128 MiB, 2 workers)' tiling_gain 128MiB 1MiB
ask 0 '30.00 GB/s [29.40, 30.60] ok (read, 2 workers, far beyond the caches)' ceiling
ask 0 '22.00 GB/s [21.56, 22.44] ok (write_nt, 2 workers, far beyond the caches)' ceiling write
ask 0 '14.00 GB/s [13.72, 14.28] ok (write_nt, 1 worker, far beyond the caches)' ceiling --mix write --workers 1
ask 0 '111.0 Gop/s [109.9, 112.1] ok (f64, 2 workers, a multiply-add is two)' compute f64
ask 0 '60.00 ns [58.80, 61.20] ok (an empty launch, solo, 1 worker)' floor solo --workers 1

# ---- an answer that is not to be relied on says so twice ----
ask 4 '180.0 ns [162.0, 198.0] unstable (an empty launch, batched, 2 workers)' floor batched
ask 4 '30.00 GB/s [29.40, 30.60] contaminated (read, 2 workers, 256 MiB in all)' bandwidth 256MiB

# ---- refusals ----
ask 4 "read/2 was measured from 4 KiB to 256 MiB; 1 GiB is outside" bandwidth 1GiB
ask 4 "4 KiB to 256 MiB; 0 bytes is outside" bandwidth 0
ask 4 "no curve of mix 'raed'; measured: read, write, write_nt, copy, copy_nt; did you mean 'read'?" bandwidth 1MiB --mix raed
ask 4 "read was not measured with 3 workers, but with 1, 2" bandwidth 1MiB --workers 3
ask 4 "no compute ceiling of type 'int8'; measured: f32, f64" compute int8
ask 4 "no knee of random/2097152 was resolved for L2" capacity L2 --pattern random
ask 4 "the system names no cache level 4; it names L1, L2, L3" capacity 4
ask 4 "the system names no cache level 4" nominal 4
ask 4 "not applicable: fake" scratch_cost 4 4
ask 4 "not applicable: fake" best_pad 128 4
ask 4 "latency has no answer for --mix write" latency 1MiB --mix write
ask 4 "write_bandwidth has no answer for --mix copy" write_bandwidth 1MiB --mix copy
ask 4 "bandwidth has no answer for --pattern random" bandwidth 1MiB --pattern random
ask 4 "latency has no answer for --workers 2, only for 1" latency 1MiB --workers 2
ask 4 "random was not measured with 2 workers, but with 1" resident 1MiB --pattern random --workers 2

# ---- usage ----
ask 2 "model needs a query; coldbench model --help lists them"
ask 2 "unknown query 'residnet'" residnet 1MiB
ask 2 "did you mean 'resident'?" residnet 1MiB
ask 2 "resident takes BYTES, 0 arguments were given" resident
ask 2 "tiling_gain takes FULL TILE, 1 arguments" tiling_gain 1MiB
ask 2 "show takes no argument, 1 arguments" show 1MiB
ask 2 "BYTES: '24MB' is not an integer" resident 24MB
ask 2 "unknown option '-5'" resident -5
ask 2 "LEVEL: 'L0' is no cache level" capacity L0
ask 2 "LEVEL: 'first' is no cache level" nominal first
ask 2 "must be 1 to 65536" bandwidth 1MiB --workers 0
ask 2 "unknown --pattern 'randm'" resident 1MiB --pattern randm
ask 2 "ceiling write and --mix copy: which?" ceiling write --mix copy

# ---- no model, another machine's, older, damaged ----
expect 3 "there is no model $XDG_DATA_HOME/coldbench/models/cpu-" "run coldbench probe" -- "$program" model show
expect 3 "device fake: " "models/fake.json" "run coldbench probe" -- "$program" model show --device fake
expect 3 "'cuda:0'" -- "$program" model show --device cuda:0
expect 2 "did you mean 'cpu'" -- "$program" model show --device cpuu
expect 3 "of another machine: of 'fake', this one is 'cpu-" -- "$program" model show --model "$models/fake.json"
for model in other-machine:"of another machine" old-schema:"'coldbench-model/0'" cut:"near end of file"; do
    expect 3 "${model#*:}" "${model%%:*}.json" "run coldbench probe" -- \
        "$program" model show --device fake --model "$models/${model%%:*}.json"
done
expect 3 "neither XDG_DATA_HOME nor HOME" -- env HOME= XDG_DATA_HOME= "$program" model show
ask 4 "the probe was cut short" compute f32 --model "$models/bare.json"

# ---- the stored one is found, the built-in help's examples run on it ----
mkdir -p "$XDG_DATA_HOME/coldbench/models"
cp "$models/fake.json" "$XDG_DATA_HOME/coldbench/models/"
expect 0 "examples:" -- "$program" model --help
grep '^  coldbench model' "$scratch/out" | grep -v -e '--device' >"$scratch/examples"
[ "$(wc -l <"$scratch/examples")" -ge 3 ] || fault "the help has too few examples"
while read -r _ example; do
    [ "$example" = "model capacity L2 --pattern random" ] && want=4 || want=0
    # shellcheck disable=SC2086 # words of the example
    expect $want -- "$program" $example --device fake
done <"$scratch/examples"

# ---- all of it on one screen ----
expect 0 "A machine of two cores" "2026-01-31T12:00:00Z by coldbench 0.2.0" "full, 3 sweeps, 2 threads" \
    "bandwidth knee (read/2)" "latency knee (random/2097152)" "2 x 32 KiB" "64 KiB to 256 KiB" "1 worker " \
    "180 unstable" "saturation: slope over the last two octaves 6 %" \
    "interference: (informative) 206 involuntary switches" -- \
    "$program" model show --device fake
grep -q 'folding' "$scratch/out" && fault "a check that passed is listed as failed"
expect 0 "full, 0 sweeps" "cut short" "of 0 checks none failed" -- \
    "$program" model show --device fake --model "$models/bare.json"
grep -q "$(printf '\033')" "$scratch/out" && fault "colour where nobody looks"

# ---- JSON ----
expect 0 '"schema": "coldbench/1"' '"kind": "model"' '"query": "resident"' '"bytes": 25165824' \
    '"pattern": "stream"' '"workers": 2' '"answer": "maybe"' '"lo": 16777216' '"hi": 67108864' \
    '"unit": "bytes"' '"verdict": "ok"' '"identity": "fake"' -- \
    "$program" model resident 24MiB --device fake --json -
grep -q '^maybe knee' "$scratch/err" || fault "with --json - the text is not on standard error"
expect 0 '"answer": 240,' '"mix": "read"' -- "$program" model bandwidth 1MiB --device fake --json -
expect 4 "1 GiB is outside" -- \
    "$program" model bandwidth 1GiB --device fake --json "$scratch/refused.json"
[ ! -s "$scratch/out" ] || fault "a refusal is printed as an answer"
for part in '"answer": null' '"lo": null' '"verdict": null' '"reason": "read/2 was measured from'; do
    grep -qF -e "$part" "$scratch/refused.json" || fault "the record of a refusal does not say: $part"
done
expect 0 '"schema": "coldbench-model/1"' '"results": []' -- "$program" model show --device fake --json -
expect 5 "cannot write /no/such/folder/x" -- \
    "$program" model show --device fake --json /no/such/folder/x
if [ -e /dev/full ]; then
    expect 5 "No space left" -- "$program" model show --device fake --json /dev/full
fi

# ---- the example in C ----
expect 0 "tile 16777216 bytes: read 3.93 times faster, [3.78, 4.09], ok" -- \
    "$tile" fake "$models/fake.json"
expect 0 "tile 16777216 bytes" -- "$tile" fake
expect 3 "tile: there is no model" "run coldbench probe" -- "$tile"
expect 4 "tile: the model has no curve of mix 'read'" -- "$tile" fake "$models/bare.json"

exit $failed
