#!/bin/sh
# gpu.sh: what is measured on a machine with a GPU, in parts. A part skips what DIR already has, so one that
# was cut off is called again. gpu.sh --help lists them.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=build/gpu device=cuda:0 minutes=7 count="" parts=""
coldbench=${COLDBENCH:-$here/../build/release/coldbench}

say() { printf 'gpu.sh: %s\n' "$*" >&2; }
die() {
    say "$2"
    exit "$1"
}
usage() {
    cat <<'END'
gpu.sh PART... [options]     measures in parts, each called again until it is done

  probe      three full probes and a quick one: probe-N.json
  run        gemv_q4, three runs a kind of activations: run-ACT-N.json, and one of tokens=2: run-ACT-tokens2.json
  aa         identical code compared, 100 times each of three kernels: a line a comparison in aa.jsonl
  planted    alu_chain 1 % longer, margin 0.5 %, 60 times: planted.jsonl
  processes  how much fresh processes of identical code differ, from aa.jsonl; measures nothing
  dobench    Triton's do_bench called twice on the same operation, 120 pairs: dobench.jsonl
  decode     a decode step, predicted by its parts and measured, three times: decode/
  sanitize   compute-sanitizer over launch_codes, beside coldbench: memcheck over all codes, racecheck over
             those with shared memory: sanitize.jsonl
  selftest   coldbench selftest --quick: selftest.json
  summary    tables of what DIR has, as markdown

  --out DIR         where records go and are found; default build/gpu
  --minutes N       a part begins nothing new after this; what is begun takes less than two more, but decode up
                    to nine, and goes on from its records when called again; default 7
  --count N         instead of 3 probes and runs, 100, 60 or 120
  --device NAME     default cuda:0
  --coldbench PATH  default: $COLDBENCH, build/release/coldbench

Status: 0 all is there, 1 the sanitizer found something, 2 usage, 3 something is not available, 4 call it again,
5 something failed (also where a record or line of it is from an earlier call), 130 interrupted.
END
}

# ---- one command ----
now_ms() { echo $(($(date +%s%N) / 1000000)); }
time_left() {
    [ -z "$stop" ] || interrupted
    [ "$(now_ms)" -lt "$deadline" ] || return 4
}
interrupted() {
    trap '' INT TERM HUP
    [ -z "$child" ] || { kill "$child" 2>/dev/null && wait "$child"; }
    die 130 "interrupted; the same command goes on from here"
}
# attempt SECONDS COMMAND...: its status in $status, milliseconds in $wall_ms, words in $work/words. In the
# background, so that a signal is heard at once; what is measured is kept before another one is.
attempt() {
    limit=$1
    shift
    begun=$(now_ms)
    trap interrupted INT TERM HUP
    timeout -k 10 "$limit" "$@" >"$work/words" 2>&1 &
    child=$!
    wait "$child"
    status=$?
    child=
    trap 'stop=yes' INT TERM HUP
    wall_ms=$(($(now_ms) - begun))
    [ "$status" != 130 ] || interrupted
}
is_complete() { [ -s "$1" ] && grep -q '^  "complete": true' "$1"; }
words() { tr -d '"\\\t' <"$work/words" | tail -n 1 | cut -c 1-300; }

# tells_fault RECORD: a selftest that was not passed, or something wrong or impossible.
tells_fault() { grep -q -e '^  "passed": false' -e '"verdict": *"wrong"' -e '"verdict": *"impossible"' "$1"; }
# amiss WORDS: the part goes on, so that a fault does not hide what comes after it, but does not end well.
amiss() {
    say "$*"
    faults=$((faults + 1))
}

# measured NAME SECONDS ARGUMENTS...: a command of coldbench whose record DIR is to have. A record that does not
# tell of itself why the command failed is not kept: a later call would take it for a good one.
measured() {
    name=$1 limit=$2
    shift 2
    if ! is_complete "$out/$name.json"; then
        time_left || return
        attempt "$limit" "$coldbench" "$@" --device "$device" -q --json "$work/$name.json"
        is_complete "$work/$name.json" || die $((status == 3 ? 3 : 5)) "$name: no record (status $status): $(words)"
        case $status in
        0 | 4) ;;
        *) tells_fault "$work/$name.json" || die 5 "$name: failed (status $status): $(words)" ;;
        esac
        mv "$work/$name.json" "$out/$name.json" # the same file system: all of it or nothing
        say "$name: status $status, $((wall_ms / 1000)) s"
    fi
    ! tells_fault "$out/$name.json" || amiss "$name: not passed, wrong or impossible; see $out/$name.json"
}

# ---- series: a line a comparison ----
# mend FILE: without the torn end of a line that a killed part leaves.
mend() {
    [ -e "$1" ] || : >"$1"
    [ -n "$(tail -c 1 "$1")" ] || return 0
    head -n "$(wc -l <"$1")" "$1" >"$work/mended" && mv "$work/mended" "$1"
    say "$1: the torn last line is gone"
}
had() { grep -c "^{\"item\":\"$1\"" "$file"; }
# Lines without a record, or of a comparison that gave no answer.
failed_lines() { grep -cv '^{"item":"[^"]*","n":[0-9]*,"status":[04],"wall_ms":[0-9]*,"record":' "$file"; }

# compared NAME ITEM ARGUMENTS...: one comparison more. The first five of an item are kept whole.
compared() {
    series=$1 item=$2 n=$(($(had "$2") + 1))
    shift 2
    record=$work/$series-$item-$n.json
    attempt 60 "$coldbench" compare "$@" --device "$device" -q --json "$record"
    case $status in 2 | 3) die "$status" "$item: $(words)" ;; esac
    if is_complete "$record" && python3 "$here/gpu_records.py" line "$record" item="$item" n="$n" status="$status" \
        wall_ms="$wall_ms" >"$work/line"; then
        failures=0
        [ "$n" -gt 5 ] || { mkdir -p "$out/whole" && gzip -c "$record" >"$out/whole/$series-$item-$n.json.gz"; }
    else
        [ -z "$stop" ] || interrupted
        printf '{"item":"%s","n":%d,"status":%d,"wall_ms":%d,"words":"%s"}\n' "$item" "$n" "$status" "$wall_ms" \
            "$(words)" >"$work/line"
        failures=$((failures + 1))
    fi
    cat "$work/line" >>"$file"
    say "$series: $item $n of $wanted: status $status, $wall_ms ms"
    [ "$failures" -lt 3 ] || die 5 "$series: three comparisons in a row failed: $(words)"
}
# series NAME COUNT, items on standard input: a name and arguments a line. The item with the fewest is next.
series() {
    file=$out/$1.jsonl wanted=$2 failures=0
    mend "$file"
    cat >"$work/items"
    while :; do
        next=$(while read -r item rest; do echo "$(had "$item") $item $rest"; done <"$work/items" | sort -sn -k 1,1 | head -n 1)
        [ "${next%% *}" -lt "$wanted" ] || break
        time_left || return
        # shellcheck disable=SC2086 # arguments are words
        compared "$1" ${next#* }
    done
    bad=$(failed_lines)
    [ "$bad" -eq 0 ] || amiss "$1: $bad of $(wc -l <"$file") comparisons failed, or a side was wrong; see $file"
}

# ---- parts ----
part_probe() {
    for n in $(seq "${count:-3}"); do measured "probe-$n" 110 probe --model "$work/model" || return; done
    measured probe-quick 60 probe --quick --model "$work/model"
}
part_run() {
    for n in $(seq "${count:-3}") tokens2; do
        [ "$n" = tokens2 ] && tokens=2 || tokens=1
        for act in bf16 q8 f32; do
            measured "run-$act-$n" 100 run "gemv_q4@act=$act,tokens=$tokens" --submit batched --shape 4096x4096 \
                --shape 11008x4096 --shape 14336x4096 --shape 28672x8192 || return
        done
    done
}
part_aa() {
    series aa "${count:-100}" <<'END'
gemv_q4-9MB gemv_q4@act=bf16 gemv_q4@act=bf16 --shape 4096x4096 --cache cold
stream_read-64MiB stream_read stream_read --shape 64MiB --cache cold
alu_chain alu_chain alu_chain --cache warm
END
}
part_planted() {
    series planted "${count:-60}" <<'END'
alu_chain+1% alu_chain@work=1000 alu_chain@work=1010 --margin 0.5% --cache warm
END
}
part_processes() { python3 "$here/gpu_records.py" summary "$out" processes; }
part_dobench() {
    mend "$out/dobench.jsonl"
    attempt 530 python3 "$here/gpu_dobench.py" "$out/dobench.jsonl" "${count:-120}" "$((seconds > 480 ? 480 : seconds))"
    cat "$work/words" >&2
    case $status in 0 | 4) return "$status" ;; *) exit 3 ;; esac
}
part_decode() { # its 4 says that a part of the step was not decided on
    ! is_complete "$out/decode/prediction-3.json" || return 0
    time_left || return
    [ -f "$here/decode_step.sh" ] || die 3 "decode: $here/decode_step.sh is not there"
    attempt 530 sh "$here/decode_step.sh" -b "$(dirname "$coldbench")" -o "$out/decode" -d "$device" -n 3
    cat "$work/words" >&2
    case $status in 0 | 4) return 0 ;; 124 | 137) return 4 ;; *) exit "$status" ;; esac
}
part_selftest() { measured selftest 110 selftest --quick; }
part_summary() { python3 "$here/gpu_records.py" summary "$out"; }

# sanitized TOOL ITEM VARIANT...
sanitized() {
    tool=$1 item=$2
    shift 2
    line="{\"tool\":\"$tool\",\"item\":\"$item\","
    ! grep -qF "$line\"variants\":\"$*\"" "$file" || return 0
    time_left || return
    # The backend's own kernels have no shared memory: racecheck need not follow them. No --launch-count: with
    # one, it did not see a race that was seeded.
    [ "$tool" = racecheck ] && own="--kernel-name-exclude kns=cb_" || own=
    # shellcheck disable=SC2086 # words
    attempt 110 "$sanitizer" --tool "$tool" $own "$launches" "$device" "$@"
    log=$out/sanitize-$tool-$item.txt
    cp "$work/words" "$log"
    found=$(sed -n 's/^=.*SUMMARY: \([0-9]*\).*/\1/p' "$log" | awk '{ n += $1 } END { if (NR) print n }')
    [ -n "$found" ] || die 3 "sanitize: $tool saw nothing of $item; $log: $(grep -m 1 Error "$log")"
    case $status in 0 | 1) ;; *) die 5 "sanitize: $item did not run (status $status); $log: $(words)" ;; esac
    # Of an item that had other codes then, this takes the place.
    { grep -vF "$line" "$file" || :; } >"$work/lines"
    printf '%s"variants":"%s","found":%d,"status":%d}\n' "$line" "$*" "$found" "$status" >>"$work/lines"
    mv "$work/lines" "$file" || exit 5
    say "sanitize: $tool $item: $found errors or hazards, status $status"
}
# racecheck looks at shared memory alone, and takes 0.2 s a launch and more: it is given codes that have some,
# and not more than four variants of a kernel at a time.
part_sanitize() {
    file=$out/sanitize.jsonl
    sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) || die 3 "sanitize: no compute-sanitizer here"
    launches=$(dirname "$coldbench")/launch_codes
    [ -x "$launches" ] || die 3 "sanitize: no $launches; sh scripts/build.sh release launch_codes builds it"
    mend "$file"
    "$launches" -l >"$work/codes" || exit 5
    awk '{ kernel = $1; sub("[@/].*", "", kernel)
           if (kernel " " $2 != last || n == 4) {
               printf "%s%s-%d %s", (NR > 1 ? "\n" : ""), kernel, ++items[kernel], $2
               n = 0
           }
           printf " %s", $1; last = kernel " " $2; n++ }
         END { print "" }' "$work/codes" >"$work/items" || exit 5
    while read -r item memory variants; do
        [ "$memory" = shared ] && tools="memcheck racecheck" || tools=memcheck
        for tool in $tools; do
            # shellcheck disable=SC2086 # variants, word by word
            sanitized "$tool" "$item" $variants </dev/null || return
        done
    done <"$work/items"
    bad=$(grep -cv '"found":0,"status":0}' "$file")
    [ "$bad" -eq 0 ] || die 1 "sanitize: $bad found something, or an output was wrong; see $out"
}

while [ $# -gt 0 ]; do
    case $1 in
    -h | --help)
        usage || exit 5
        exit 0
        ;;
    probe | run | aa | planted | processes | dobench | decode | sanitize | selftest | summary)
        parts="$parts $1"
        shift
        continue
        ;;
    --out) out=${2:-} ;;
    --minutes) minutes=${2:-} ;;
    --count) count=${2:-} ;;
    --device) device=${2:-} ;;
    --coldbench) coldbench=${2:-} ;;
    *) die 2 "no part or option '$1'; gpu.sh --help lists them" ;;
    esac
    [ -n "${2:-}" ] || die 2 "$1 needs a value"
    shift 2
done
case $minutes in *[!0-9.]* | *.*.*) die 2 "--minutes $minutes is no number" ;; esac
case $count in *[!0-9]* | 0* | ???????*) die 2 "--count $count is no number of times" ;; esac
[ -n "$parts" ] || die 2 "no part; gpu.sh --help lists them"
case $parts in
*probe* | *run* | *aa* | *planted* | *decode* | *sanitize* | *selftest*)
    command -v "$coldbench" >/dev/null || die 3 "no coldbench at $coldbench; --coldbench names it"
    ;;
esac
command -v python3 >/dev/null || die 3 "no python3"
mkdir -p "$out" && work=$(mktemp -d "$out/.work-XXXXXX") || exit 5
stop='' child='' final=0
trap 'rm -rf "$work"' EXIT
trap 'stop=yes' INT TERM HUP
seconds=$(awk -v m="$minutes" 'BEGIN { printf "%d", m * 60 }')
for part in $parts; do
    deadline=$(($(now_ms) + seconds * 1000)) faults=0
    "part_$part"
    status=$?
    case $status in
    0) [ "$faults" -eq 0 ] || [ "$final" = 4 ] || final=5 ;;
    4) final=4 && say "$part: the time is over before all of it is there; the same command goes on" ;;
    *) exit "$status" ;;
    esac
done
exit $final
