#!/bin/sh
# test_decode_step.sh ROOT COLDBENCH: examples/decode_step and scripts/decode_step.sh without a GPU: on the cpu, and
# on the scripted device, whose times are exact. Records are then spoilt, one thing at a time.
set -u

program=${2:-}
if [ -z "$program" ]; then
    echo "no program to test" >&2
    exit 77
fi
build=$(dirname "$program")
decode=$build/decode_step
faults=$build/modules/faults.so
[ -x "$decode" ] || { echo "$decode is not built" && exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
export XDG_DATA_HOME="$scratch/data"

fault() {
    echo "$*"
    sed 's/^/    /' "$scratch/out"
    failed=1
}

# try STATUS COMMAND...: what it wrote is looked at with said.
try() {
    want=$1
    shift
    words=$*
    timeout 120 "$@" >"$scratch/out" 2>&1
    got=$?
    [ "$got" = "$want" ] || fault "$words: status $got, not $want"
}

said() {
    for text in "$@"; do
        grep -qF -e "$text" "$scratch/out" || fault "$words: nothing says: $text"
    done
}

# ---- measured and verified, where every launch really runs ----
try 0 "$decode" measure gemv_q4 --model tiny --device cpu --rounds 2 --json "$scratch/cpu.json"
said "step of tiny: 21 launches" "2 rounds: ok"
grep -q '"bound"' "$scratch/cpu.json" || fault "the record has no checks"
try 0 "$decode" measure "gemv_q4@act=q8" --model tiny --device cpu --rounds 1
try 0 "$decode" measure "gemv_q4@act=bf16" --model tiny --device cpu --rounds 1
[ -e "$faults" ] && {
    try 0 "$decode" measure faults/clean --kernel "$faults" --model tiny --device cpu --rounds 1
    for seed in group_wrong:"outside the error bound, first at 32" unwritten_tail:"never written, first at 61, matrix 0 of q, o, before timing" \
        past_end:"bytes changed outside an output" edits_weight:"inputs fail" not_a_number:"NaN or Inf" \
        edits_later:"inputs fail" tires:"outside the error bound"; do
        try 1 "$decode" measure "faults/${seed%%:*}" --kernel "$faults" --model tiny --device cpu --rounds 1
        said "${seed#*:}" "the step is wrong"
    done
    try 1 "$decode" measure faults/fails --kernel "$faults" --model tiny --device cpu --rounds 1
    said "failed with code 7"
    try 1 "$decode" measure faults/crashes --kernel "$faults" --model tiny --device cpu --rounds 1
    said "a round died of signal 6"
    try 1 "$decode" measure faults/leaves --kernel "$faults" --model tiny --device cpu --rounds 1
    said "no answer"
}

# ---- exact: the scripted device's cache holds no step, and its floor is that of any batch ----
fake=fake:llc=32KiB,noise=0
shapes=$("$decode" shapes --model tiny | tr '\n' ' ')
step=$scratch/step.json
good=$scratch/parts.json
try 0 "$decode" measure gemv_q4 --model tiny --device $fake --json "$step"
said "10.39 us [10.39, 10.39]" "6 rounds: ok"
# shellcheck disable=SC2086 # options, word by word
try 0 "$program" run gemv_q4 $shapes --device $fake --submit batched --seed 1 -q --json "$good"
try 0 "$decode" compare "$step" "$good" --json "$scratch/prediction.json"
said "predicted by cold parts       -0.00 % [-0.00, +0.00]   within 3 %" "predicted by warm parts       -47.66 %" \
    "   worse" "by its own matrices, alone    +0.00 %"
# The sums, again: count times what stands before the bracket.
awk '
    $NF ~ /bound|%$/ && /x/ && !/^step|^pred|^by/ {
        for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+x[0-9]+$/) { n += $(i+1); cold += $(i+1) * $(i+2); warm += $(i+1) * $(i+5) }
    }
    $1 == "sum" { if (n != $2 || (cold - $3)^2 > 1e-3 || (warm - $6)^2 > 1e-3) bad = 1; seen = 1 }
    END { exit bad || !seen }' "$scratch/out" || fault "the sums are not those of the rows"
grep -q '"kind": "decode_prediction"' "$scratch/prediction.json" || fault "no record of the prediction"

# ---- predictions that are not good are told as such ----
try 0 "$decode" measure gemv_q4 --model tiny --device $fake,dram_gbs=60 --json "$scratch/fast.json"
try 0 "$decode" compare "$scratch/fast.json" "$good"
said "NOT within 3 %" "   worse"
try 0 "$decode" measure gemv_q4 --model tiny --device $fake,dram_gbs=200 --json "$scratch/cached.json"
try 0 "$decode" compare "$scratch/cached.json" "$good"
said "predicted by warm parts       -0.00 %" "NOT worse"
# The first interval of the record is that of 64x256, cold, 475.6 ns: 6 of 21.
sed '0,/"mid": [0-9.]*/s//"mid": 485.112/; 0,/"hi": [0-9.]*/s//"hi": 500/' "$good" >"$scratch/later.json"
try 0 "$decode" compare "$step" "$good" "$scratch/later.json"
said "drift cold, warm" "+2.02 +0.00 %" "0.480 [0.476, 0.500]" "[-0.00, +1.41]" "measured by 2 runs"

# ---- records that do not belong together, or are spoilt ----
# spoil SED RECORD STATUS WORDS...: the record, edited, is refused.
spoil() {
    sed "$1" "$2" >"$scratch/spoilt.json"
    cmp -s "$2" "$scratch/spoilt.json" && fault "'$1' changes nothing"
    kind=$2 status=$3
    shift 3
    if [ "$kind" = "$step" ]; then
        try "$status" "$decode" compare "$scratch/spoilt.json" "$good"
    else
        try "$status" "$decode" compare "$step" "$scratch/spoilt.json"
    fi
    said "$@"
    [ "$status" = 4 ] || [ "$(wc -l <"$scratch/out")" = 1 ] || fault "$words: more than a line"
}
spoil '0,/"mid": [0-9.]*/s//"mid": 485.112/' "$good" 2 "not an interval"
spoil 's/"count": 3/"count": 4/' "$step" 1 "the parts are 22 launches, the step 21"
spoil 's/"launches": 21/"launches": 20/' "$step" 1 "the parts are 21 launches, the step 20"
spoil '0,/"bytes_read": /s/"bytes_read": /&1/' "$step" 1 "the parts read"
spoil 's/"verdict": "ok"/"verdict": "wrong"/' "$step" 1 "is wrong: it predicts nothing"
spoil 's/"kind": "decode_step"/"kind": "run"/' "$step" 2 "of kind 'run', not 'decode_step'"
spoil '0,/"time_ns"/s/"time_ns"/"times_ns"/' "$step" 2 "time_ns"
spoil '0,/"names"/s/"names"/"name"/' "$step" 2 "names"
spoil 's/"verdict": "ok"/"verdict": "impossible"/' "$good" 1 "64x256 cold is impossible: it predicts nothing"
spoil 's/"verdict": "ok"/"verdict": "unstable"/' "$good" 4 "cold: unstable" "could not be decided on"
spoil 's/"verdict": "ok"/"verdict": "fine"/' "$good" 2 "no verdict of name 'fine'"
spoil 's/"identity": "fake"/"identity": "other"/' "$good" 2 "is of device other, the step of fake"
spoil 's/"complete": true/"complete": false/' "$good" 2 "incomplete"
spoil 's/"cols": 384/"cols": 352/' "$good" 2 "has no row of" "64x384, cold, batched"
spoil 's/"submit": "batched"/"submit": "solo"/' "$good" 2 "has no row of"
spoil 's/act=f32/act=q8/' "$good" 2 "has no row of"
spoil '0,/"bytes_read": /s/"bytes_read": /&1/' "$good" 1 "in the step"
spoil '1s/{/[/' "$good" 2 "spoilt.json"
try 5 "$decode" compare "$step" "$scratch/none.json"
said "none.json: No such file"
try 2 "$decode" compare "$step"
said "compare takes"
try 5 "$decode" compare "$step" "$good" --json "$scratch/none/p.json"
# What has no end, and what is too long: 256 MiB of memory are enough to refuse it.
limited() {
    (ulimit -v 262144 && exec "$@")
}
limited "$decode" --help >"$scratch/out" 2>&1 || limited() { "$@"; } # a sanitizer reserves terabytes
mkfifo "$scratch/pipe"
for place in /dev/zero "$scratch/pipe" "$scratch"; do
    limited timeout 60 "$decode" compare "$place" "$good" >"$scratch/out" 2>&1
    got=$?
    words="compare $place"
    [ "$got" = 2 ] || fault "$words: status $got, not 2"
    said "$place is not a file"
done
truncate -s 300M "$scratch/long.json"
limited timeout 60 "$decode" compare "$step" "$scratch/long.json" >"$scratch/out" 2>&1
got=$?
words="compare long.json"
[ "$got" = 2 ] || fault "$words: status $got, not 2"
said "long.json: it is over 16 MiB long"
# A part that was not decided on is told in vain; the record is kept.
sed 's/"verdict": "ok"/"verdict": "unstable"/' "$good" >"$scratch/open.json"
for parts in "$good" "$scratch/open.json"; do
    rm -f "$scratch/kept.json"
    words="compare >/dev/full"
    "$decode" compare "$step" "$parts" --json "$scratch/kept.json" >/dev/full 2>"$scratch/out"
    got=$?
    [ "$got" = 5 ] || fault "$words: status $got, not 5"
    said "standard output: No space left on device"
    [ -s "$scratch/kept.json" ] || fault "$words: no record"
done

# ---- what is not valid, and what is not there, in one line ----
# refuse STATUS WORDS ARGUMENTS...
refuse() {
    status=$1 text=$2
    shift 2
    try "$status" "$decode" "$@"
    said "$text"
    [ "$(wc -l <"$scratch/out")" = 1 ] || fault "$words: more than a line"
}
refuse 3 "device 'cuda:99'" measure --model tiny --device cuda:99
refuse 2 "did you mean 'tiny'" measure --model tinny --device cpu
refuse 2 "no verb 'predict'" predict
refuse 2 "no verb" --rounds 3
refuse 2 "--rounds" measure --rounds 0
refuse 2 "--jsn" measure --jsn x
refuse 2 "gemv_q4" measure gemv_q5 --model tiny --device cpu
refuse 2 "takes one variant" measure gemv_q4 gemv_q4 --model tiny --device cpu
refuse 2 "did you mean" measure gemv_q4 --model tiny --device fake:nois=0
refuse 1 "a launch failed" measure gemv_q4 --model tiny --device fake:fail_launch=200
try 0 "$decode" --help
said "decode_step compare" "--rounds"

# ---- the script: with a coldbench that writes the record that is there already ----
script=$1/scripts/decode_step.sh
mkdir "$scratch/bin"
ln -s "$(cd "$build" && pwd)/decode_step" "$scratch/bin/decode_step"
cat >"$scratch/bin/coldbench" <<EOF
#!/bin/sh
echo "\$*" >>"$scratch/asked"
while [ "\$1" != --json ]; do shift; done
cp "$good" "\$2" && exit "\$(cat "$scratch/status")"
EOF
chmod +x "$scratch/bin/coldbench"
# What every run exits with: what the script does.
for status in 0:0 4:4 5:5; do
    echo "${status%:*}" >"$scratch/status"
    rm -rf "$scratch/asked" "$scratch/many"
    try "${status#*:}" sh "$script" -b "$scratch/bin" -o "$scratch/many" -d $fake -v gemv_q4 -m tiny -n 2 -s 8
    [ "$status" = 5:5 ] && continue
    [ "$(grep -c 'predicted by cold parts' "$scratch/out")" = 2 ] || fault "not two predictions"
    [ "$(grep -c 'measured by 2 runs' "$scratch/out")" = 2 ] || fault "a step is not compared with the runs beside it"
    for record in parts-0 step-1 parts-1 prediction-1 step-2 parts-2 prediction-2; do
        [ -s "$scratch/many/$record.json" ] || fault "no record $record"
    done
    grep -qxF "run gemv_q4 ${shapes% } --device $fake --submit batched --quiet --budget 8 --json $scratch/many/parts-0.json" \
        "$scratch/asked" || fault "asked of coldbench: $(cat "$scratch/asked")"
done
# ---- the script goes on from whole records ----
echo 0 >"$scratch/status"
rm -rf "$scratch/asked" "$scratch/many"
again() {
    try "$1" sh "$script" -b "$scratch/bin" -o "$scratch/many" -d $fake -v "${2:-gemv_q4}" -m tiny -n 2 -s 8
}
again 0
for record in parts-0 step-1 parts-1 step-2 parts-2; do cp -p "$scratch/many/$record.json" "$scratch/$record.was"; done
again 0
[ "$(wc -l <"$scratch/asked")" = 3 ] || fault "what is there is measured again"
[ "$(grep -c 'predicted by cold parts' "$scratch/out")" = 2 ] || fault "what is there is not compared again"
! grep -q 'decode_step.sh: step' "$scratch/out" || fault "a step that is there is measured again"
head -c 2000 "$scratch/step-2.was" >"$scratch/many/step-2.json" # torn
sed 's/"complete": true/"complete": false/' "$scratch/parts-1.was" >"$scratch/many/parts-1.json" # cut off
rm "$scratch/many/parts-2.json"
again 0
[ "$(wc -l <"$scratch/asked")" = 5 ] || fault "not two of the parts are measured again"
said "step, 2 of 2" "parts, 1 of 2" "parts, 2 of 2"
! grep -q -e 'step, 1' -e 'parts, 0' "$scratch/out" || fault "what is whole is measured again"
for record in step-2 parts-1; do
    [ "$(tail -n 1 "$scratch/many/$record.json")" = "}" ] && grep -q '"complete": true' "$scratch/many/$record.json" ||
        fault "$record is not whole"
done
cp "$scratch/open.json" "$scratch/many/parts-2.json"
again 4
again 2 "gemv_q4@act=q8"
said "has records of something else than gemv_q4@act=q8, tiny"
rm "$scratch/many/asked"
again 2
for option in -h --help; do
    try 0 sh "$script" $option
    said "decode_step.sh [options]" "-o FOLDER"
    try 0 sh "$1/scripts/embed_cuda.sh" $option
    said "embed_cuda.sh" "COLDBENCH_NVRTC"
done
try 2 sh "$1/scripts/embed_cuda.sh" nonsense

try 3 sh "$script" -b "$build" -o "$scratch/none" -d cuda:99 -m tiny
said "device 'cuda:99'"
try 2 sh "$script" -b "$build" -n some
said "-n some"
try 2 sh "$script" -b "$scratch"
said "scripts/build.sh release coldbench decode_step"
try 2 sh "$script" -b "$build" spare
said "'spare' is no option"
exit $failed
