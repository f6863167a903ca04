#!/bin/sh
# decode_step.sh: how well do parts, measured alone, predict a decode step? decode_step.sh --help says how it is used.
set -u
folder=$(dirname "$0")/../build/release
out=decode-step device=cuda:0 variant=gemv_q4@act=bf16 model=llama-3-8b times=1 budget=20
usage() {
    cat <<'END'
decode_step.sh [options]     how well do parts, measured alone, predict a decode step?

Measures the parts with `coldbench run`, then the step, then the parts again, and compares; -n 3: parts, step,
parts, step, parts, step, parts, each step beside the parts before and after it. Records that are there and whole
are not measured again: what was cut off is called again with the same options.

  -b FOLDER   where coldbench and decode_step are (build/release)
  -o FOLDER   for the records (decode-step)
  -d DEVICE   (cuda:0)           -v VARIANT  (gemv_q4@act=bf16)
  -m MODEL    (llama-3-8b)       -n N        comparisons (1)
  -s SECONDS  budget of each time that the parts are measured (20)
  -h, --help  this page

Status: 0; 4 where some part was not decided on; else that of the command that failed.
END
}
help() {
    usage || exit 5
    exit 0
}
[ "${1:-}" != --help ] || help
while getopts b:o:d:v:m:n:s:h option; do
    case $option in
    b) folder=$OPTARG ;;
    o) out=$OPTARG ;;
    d) device=$OPTARG ;;
    v) variant=$OPTARG ;;
    m) model=$OPTARG ;;
    n) times=$OPTARG ;;
    s) budget=$OPTARG ;;
    h) help ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 0 ] || { echo "decode_step.sh: '$1' is no option" >&2 && exit 2; }
case $times in '' | *[!0-9]* | 0) echo "decode_step.sh: -n $times is not a number of comparisons" >&2 && exit 2 ;; esac
for program in coldbench decode_step; do
    [ -x "$folder/$program" ] && continue
    echo "decode_step.sh: no $folder/$program; sh scripts/build.sh release coldbench decode_step builds it" >&2
    exit 2
done
mkdir -p "$out" || exit 5
shapes=$("$folder/decode_step" shapes --model "$model") || exit
asked="$variant, $model, $device, $budget s"
if [ -e "$out/parts-0.json" ] && [ "$(cat "$out/asked" 2>/dev/null)" != "$asked" ]; then
    echo "decode_step.sh: $out has records of something else than $asked; -o names another folder" >&2
    exit 2
fi
echo "$asked" >"$out/asked" || exit 5

# answered COMMAND...: status 4 is an answer too, and remembered.
undecided=0
answered() {
    "$@"
    status=$?
    [ $status -eq 4 ] && undecided=4 && return
    [ $status -eq 0 ] || exit $status
}

# A record says at its beginning that it is complete, and may be torn.
is_whole() { [ -s "$1" ] && grep -q '^  "complete": true' "$1" && [ "$(tail -n 1 "$1")" = "}" ]; }

# The table of parts is in decode_step's. Whether they were decided on, compare says too.
parts() {
    ! is_whole "$out/parts-$1.json" || return 0
    printf 'decode_step.sh: parts, %d of %d\n' "$1" "$times" >&2
    # shellcheck disable=SC2086 # options, word by word
    answered "$folder/coldbench" run "$variant" $shapes --device "$device" --submit batched --quiet \
        --budget "$budget" --json "$out/parts-$1.json"
}

step() {
    ! is_whole "$out/step-$1.json" || return 0
    printf 'decode_step.sh: step, %d of %d\n' "$1" "$times" >&2
    answered "$folder/decode_step" measure "$variant" --model "$model" --device "$device" --seed "$1" \
        --json "$out/step-$1.json"
}

parts 0
i=1
while [ "$i" -le "$times" ]; do
    step "$i"
    parts "$i"
    answered "$folder/decode_step" compare "$out/step-$i.json" "$out/parts-$((i - 1)).json" "$out/parts-$i.json" \
        --json "$out/prediction-$i.json"
    i=$((i + 1))
done
exit $undecided
