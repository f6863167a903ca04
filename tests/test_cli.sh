#!/bin/sh
# test_cli.sh ROOT COLDBENCH: the command line as a person meets it: exit status, and what is said where.
# On the scripted device, so that no figure depends on the machine; once on the real one, whose figures are not
# looked at. Models go to a folder of the test's own.
set -u

program=${2:-}
if [ -z "$program" ]; then
    echo "no program to test" >&2
    exit 77
fi
seeded=$(dirname "$program")/tests/modules
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
fake=fake:llc=256KiB
# What a probe reads for a few milliseconds is read for real: a slow device reads little.
slow=$fake,cache_gbs=4,dram_gbs=1,cache_ns=20,dram_ns=400
export XDG_DATA_HOME="$scratch/data"

fault() {
    echo "$*"
    sed 's/^/    /' "$scratch/err"
    failed=1
}

# expect STATUS PART... -- ARGUMENTS: the program ends with STATUS, and each PART is on standard error.
expect() {
    want=$1
    shift
    : >"$scratch/parts"
    while [ "$1" != -- ]; do
        printf '%s\n' "$1" >>"$scratch/parts"
        shift
    done
    shift
    "$program" "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" = "$want" ] || fault "coldbench $*: status $got, not $want"
    while IFS= read -r part; do
        grep -qF -e "$part" "$scratch/err" || fault "coldbench $*: nothing on standard error says: $part"
    done <"$scratch/parts"
}

said() {
    grep -qF -e "$1" "$scratch/out" || fault "standard output does not say: $1"
}

quick="--device $fake --budget 1 --seed 7 --cache cold --submit batched"

# ---- names: what is valid, and the nearest ----
expect 2 "usage: coldbench" --
expect 2 "unknown verb 'rum'" "did you mean 'run'" -- rum
expect 2 "run needs 1 to 32 kernels" -- run
expect 2 "unknown option '--bugdet'" "did you mean '--budget'" -- run gemv_q4 --bugdet 1
expect 2 "unknown kernel 'gemv_q5'" "stream_read" "did you mean 'gemv_q4'" -- run gemv_q5 --shape 64x64
expect 2 "unknown parameter 'tokns'" "act, tokens" "'tokens'" -- run gemv_q4@tokns=1 --shape 64x64
expect 2 "value of act 'f33'" "f32, q8" -- run gemv_q4@act=f33 --shape 64x64
expect 2 "unknown implementation 'portabel'" "'portable'" -- run gemv_q4/portabel --shape 64x64
expect 2 "unknown tunable 'block_row'" "'block_rows'" -- run gemv_q4:block_row=1 --shape 64x64
expect 2 "unknown device 'cpuu'" "did you mean 'cpu'" -- run gemv_q4 --shape 64x64 --device cpuu
expect 2 "'lcc'" "did you mean 'llc'" -- run gemv_q4 --shape 64x64 --device fake:lcc=1
expect 3 "'cuda:0'" -- run gemv_q4 --shape 64x64 --device cuda:0
expect 2 "unknown shape list 'llama-3-9b'" "did you mean 'llama-3-8b'" -- run gemv_q4 --shapes llama-3-9b
expect 2 "probe takes no argument, 'gemv_q4'" -- probe gemv_q4
expect 2 "selftest takes no argument, 'timer'" -- selftest timer
expect 2 "unknown option '--quik'" "did you mean '--quick'" "coldbench probe --help" -- probe --quik
expect 2 "unknown device 'fakee'" "did you mean 'fake'" -- probe --device fakee
expect 3 "'cuda:0'" -- probe --device cuda:0
expect 3 "'opencl:0'" -- selftest --device opencl:0

# ---- shapes: the rule and the value ----
expect 2 "gemv_q4 needs a shape" -- run gemv_q4
expect 2 "multiple of 32" "33 is not" -- run gemv_q4 --shape 64x33
expect 2 "rows of gemv_q4" "'0'" -- run gemv_q4 --shape 0x32
expect 2 "rows of gemv_q4" "'-1'" -- run gemv_q4 --shape=-1x32
expect 2 "out of range" "99999999999999999999" -- run gemv_q4 --shape 99999999999999999999x32
expect 2 "2 integers" -- run gemv_q4 --shape 64x64x64
expect 2 "'64z'" -- run gemv_q4 --shape 64x64z
expect 2 "alu_chain has no shape" -- run alu_chain --shape 64

# ---- budget, memory, outputs: before anything is measured ----
expect 2 "the minimum is 1 s" -- run gemv_q4 --shape 64x64 --device $fake --budget 0.5
expect 2 "the minimum is 2 s" -- run gemv_q4 --shape 64x64 --shape 64x128 --device $fake --budget 1.5
expect 3 "gemv_q4 needs" "1.0 MiB are available" "--cache warm" -- \
    run gemv_q4 --shape 1024x1024 --device fake:memory=1MiB
expect 5 "cannot write /no/such/folder/x: No such file or directory" -- \
    run gemv_q4 --shape 64x64 $quick --json /no/such/folder/x
expect 5 "cannot write /no/such/folder/x" -- run gemv_q4 --shape 64x64 $quick --csv /no/such/folder/x
[ ! -s "$scratch/out" ] || fault "measured before the path was tried"
expect 2 "only one can go to standard output" -- run gemv_q4 --shape 64x64 $quick --json - --csv -
expect 2 "--budget: '4.9' is out of range, must be 5 to" -- probe --device $fake --budget 4.9
expect 2 "--runs: '0' is out of range" -- selftest --device $fake --runs 0
for verb in probe selftest; do
    expect 5 "cannot write /no/such/folder/x: No such file" -- $verb --device $fake --json /no/such/folder/x
    [ ! -s "$scratch/out" ] || fault "$verb: measured before the path was tried"
    expect 2 "only one can go to standard output" -- $verb --device $fake --json - --csv -
done

# ---- a full disk: the table is printed all the same ----
expect 5 "/dev/full" "No space left" -- run gemv_q4 --shape 1024x4096 $quick --json /dev/full
said "1024x4096"

# ---- a standard output that is closed, a file that may not grow: words and status 5, no signal ----
for line in "--help" "--version" "run --help" "kernels" "run gemv_q4 --shape 1024x4096 $quick"; do
    # shellcheck disable=SC2086 # words
    "$program" $line >&- 2>"$scratch/err"
    got=$?
    [ "$got" = 5 ] || fault "coldbench $line without standard output: status $got, not 5"
    grep -q "writing standard output: Bad file descriptor" "$scratch/err" || fault "coldbench $line >&-: not said"
done
(ulimit -f 8 && "$program" kernels --export "$scratch/small") 2>"$scratch/err"
got=$?
[ "$got" = 5 ] || fault "a file that may not grow: status $got, not 5"
grep -q "File too large" "$scratch/err" || fault "a file that may not grow: not said"

# ---- a file is replaced as a whole, or left as it was ----
mkdir "$scratch/files"
for out in json csv; do
    echo earlier >"$scratch/files/kept"
    chmod 640 "$scratch/files/kept"
    expect 2 "unknown kernel" -- run gemv_q5 --shape 64x64 --$out "$scratch/files/kept"
    expect 2 "is too small" -- run gemv_q4 --shape 64x64 $quick --budget 0.1 --$out "$scratch/files/kept"
    expect 2 "is too small" -- run gemv_q4 --shape 64x64 $quick --budget 0.1 --$out "$scratch/files/new"
    [ "$(cat "$scratch/files/kept")" = earlier ] || fault "--$out: a usage error lost the file that was there"
    [ ! -e "$scratch/files/new" ] || fault "--$out: a usage error left a file"
    ln -sf kept "$scratch/files/link"
    expect 0 -- run gemv_q4 --shape 1024x4096 $quick --$out "$scratch/files/link"
    [ -L "$scratch/files/link" ] && grep -q gemv_q4 "$scratch/files/kept" || fault "--$out: a link is not followed"
    [ "$(stat -c %a "$scratch/files/kept")" = 640 ] || fault "--$out: the file has another mode"
    rm "$scratch/files/kept" "$scratch/files/link"
done
# Interrupted whenever: a whole record, or none.
for signal in INT TERM HUP; do
    for pause in 0 0 0.01 0.02 0.05; do
        "$program" run gemv_q4 --shape 1024x4096 --device $fake --budget 60 --json "$scratch/files/cut.json" \
            >"$scratch/out" 2>"$scratch/err" &
        running=$!
        sleep $pause
        kill -$signal "$running"
        wait "$running"
        [ ! -e "$scratch/files/cut.json" ] || [ "$(tail -c 2 "$scratch/files/cut.json")" = "}" ] ||
            fault "$signal after $pause s: half a record"
        rm -f "$scratch/files/cut.json"
    done
done
[ -z "$(ls -A "$scratch/files")" ] || fault "left beside the outputs: $(ls -A "$scratch/files")"

# ---- modules ----
for seed in ABI NO_ENTRY LOAD_FAULTS LOAD_EXITS; do
    expect 2 "seeded_$seed.so" -- run seeded --kernel "$seeded/seeded_$seed.so" --shape 64
done
expect 2 "/no/such.so" -- run seeded --kernel /no/such.so --shape 64
expect 0 -- kernels seeded --kernel "$seeded/seeded_NONE.so"
said "y[i] = x[i]"
# A kernel with code for GPUs alone can be read about anywhere.
expect 0 -- kernels scratch_read
said "cuda (NVIDIA GPUs)"

# ---- verdicts and exit statuses ----
expect 0 -- run gemv_q4 --shape 1024x4096 $quick
said "ok"
expect 1 -- run gemv_q4 --shape 1024x4096 $quick --device "$fake,peak_gbs=30"
said "impossible"
expect 1 -- run gemv_q4 --shape 1024x4096 $quick --device "$fake,fail_launch=20"
said "wrong"
# A cache larger than the device says: 2k sets are read as fast as k, and both faster than a long read.
expect 4 -- run gemv_q4 --shape 1024x1024 --cache cold --submit batched --device fake:llc=64KiB,cache=12MiB,noise=0
said "x the ceiling of one long read of all sets"
said "contaminated"
expect 4 -- run gemv_q4 --shape 1024x4096 $quick --device "$fake,cache=1GiB,peak_dram_gbs=50"
said "contaminated"
expect 0 -- run alu_chain --device fake --budget 1 --seed 7 --submit batched

# ---- where things go ----
expect 0 -- run gemv_q4 --shape 1024x4096 $quick -q
[ ! -s "$scratch/out" ] && [ ! -s "$scratch/err" ] || fault "-q is not quiet"
expect 0 "1024x4096" -- run gemv_q4 --shape 1024x4096 $quick --csv -
awk -F'"' '{ gsub(/,/, ";", $2); n = split($1 $2 $3, field, ","); if (NR == 1) columns = n
            if (n != columns || NR > 2) exit 1 } END { if (NR != 2) exit 1 }' "$scratch/out" ||
    fault "the CSV has not as many columns in its row as in its head"
expect 0 "1024x4096" -- run gemv_q4 --shape 1024x4096 $quick --json -
for key in schema kind complete seed started startup_s measure_s tool version build_id source_id compiler host \
    device checks results kernel variant params shape cache submit threads clock bytes_read bytes_written flops \
    time_ns lo mid hi coverage gb_per_s gflop_per_s of_twin of_ceiling floor_share samples_ns order rounds \
    verdict name status required detail; do
    said "\"$key\":"
done
said '"schema": "coldbench/1"'
said '"complete": true'

# ---- the same seed: the same record ----
stable() { sed -E '/"(started|startup_s|load1|prepare_ns|(shapes|filling|twin|rounds|inputs)_s)":|involuntary switches"/d' "$1"; }
cp "$scratch/out" "$scratch/first"
expect 0 -- run gemv_q4 --shape 1024x4096 $quick --json -
stable "$scratch/first" >"$scratch/a"
stable "$scratch/out" >"$scratch/b"
diff "$scratch/a" "$scratch/b" >"$scratch/err" || fault "two runs with one seed differ"
expect 0 -- run gemv_q4 --shape 1024x4096 $quick --seed 8 --json -
stable "$scratch/out" >"$scratch/b"
cmp -s "$scratch/a" "$scratch/b" && fault "another seed gives the same record"

# ---- probe: table, record, points, model ----
expect 0 -- probe --device "$slow" --budget 600 --seed 7 --json "$scratch/probe.json" --csv "$scratch/probe.csv"
said "points: all ok"
said "controls"
said "L1   memory"
grep -q '"complete": true' "$scratch/probe.json" || fault "probe: the record is not complete"
[ "$(wc -l <"$scratch/probe.csv")" -gt 80 ] || fault "probe: too few points in the CSV"
[ ! -e "$XDG_DATA_HOME" ] || fault "a model of the scripted device was stored unasked"
expect 0 "the model is stored in $scratch/deep/fake.json" "points: all ok" -- \
    probe --quick --device "$slow" --budget 600 --seed 7 --model "$scratch/deep/fake.json" --json -
for key in schema kind complete seed model curves mix workers bytes gb_per_s latency pattern page_bytes ns knees \
    curve lo_bytes hi_bytes ceilings read write copy floors submit threads scratch checks verdict; do
    said "\"$key\":"
done
cp "$scratch/out" "$scratch/first"
expect 0 "points: all ok" -- probe --quick --device "$slow" --budget 600 --seed 7 --csv -
head -n 1 "$scratch/out" | grep -q '^kind,what,' || fault "probe --csv -: no CSV on standard output"
expect 0 -- probe --quick --device "$slow" --budget 600 --seed 7 --json - -q
[ ! -s "$scratch/err" ] || fault "probe -q is not quiet"
# Pages and interference are the host's; what was swept and made of it is the script's.
swept() { sed -n '/"curves": \[/,/"scratch":/p' "$1"; }
swept "$scratch/first" >"$scratch/a"
swept "$scratch/out" >"$scratch/b"
[ -s "$scratch/a" ] || fault "probe: the record has no curves"
diff "$scratch/a" "$scratch/b" >"$scratch/err" || fault "two probes with one seed differ"
expect 0 -- model capacity L1 --device fake --model "$scratch/deep/fake.json"
expect 0 -- model bandwidth 64KiB --device fake --model "$scratch/deep/fake.json"
grep -qE '^(3\.9|4\.0)' "$scratch/out" || fault "model: not the 4 GB/s of the script"

# A place that no model can have is refused before anything is measured, and so is what else is wrong: a file
# of an earlier record stays as it is.
echo file >"$scratch/file"
echo earlier >"$scratch/kept.json"
expect 5 "cannot make folder $scratch/file: Not a directory" -- \
    probe --quick --device "$slow" --model "$scratch/file/x" --json "$scratch/kept.json"
expect 5 "it is a folder" -- probe --quick --device "$slow" --model "$scratch" --json "$scratch/kept.json"
expect 2 "unknown device 'zzz'" -- probe --device zzz --json "$scratch/kept.json"
[ "$(cat "$scratch/kept.json")" = earlier ] || fault "probe: a record that was there is lost"
# What cannot be launched is an error; a ceiling above the memory's own is impossible.
expect 1 "a launch failed with code 1" -- probe --quick --device "$slow,fail_launch=5"
expect 1 -- probe --quick --device "$slow,peak_dram_gbs=0.5"

# ---- selftest: what can be tried on a scripted device ----
expect 0 -- selftest --device "$slow" --runs 2 --json "$scratch/self.json"
for part in "clean twin           none         2 of 2" "shrunk buffer        coverage     2 of 2" \
    "never-written pages  content      2 of 2" "time is scripted" "the judge works here"; do
    said "$part"
done
[ "$(grep -c "not seeded" "$scratch/out")" = 4 ] || fault "selftest: not four faults of timing are left out"
grep -q '"faults":' "$scratch/self.json" || fault "selftest: the record has no faults"
expect 0 "clean twin" -- selftest --device "$slow" --csv -
said "fault,expected,got,runs,right"

# ---- Ctrl-C and other ends: the record so far, marked incomplete; no model ----
# interrupted "SIGNAL..." VERB ARGUMENTS
interrupted() {
    signals=$1
    verb=$2
    rm -f "$scratch/cut.json"
    shift 2
    "$program" "$verb" "$@" --json "$scratch/cut.json" >"$scratch/out" 2>"$scratch/err" &
    running=$!
    # Started in the background by a script, a program ignores SIGINT unless it sets a handler: it does.
    sleep 1
    for signal in $signals; do
        kill -"$signal" "$running"
    done
    wait "$running"
    got=$?
    [ "$got" = 130 ] || fault "$verb interrupted by $signals: status $got, not 130"
    grep -q '"complete": false' "$scratch/cut.json" || fault "$verb interrupted: the record is not marked"
    [ "$(tail -c 2 "$scratch/cut.json")" = "}" ] || fault "$verb interrupted: the record does not end"
}
# Twice at once, as timeout(1) does it, is once; two of a kind may be delivered as one, these are not.
for signals in INT TERM HUP "TERM TERM" "TERM INT"; do
    interrupted "$signals" run gemv_q4 --shapes llama-3-8b --device fake:llc=8MiB --budget 60 --seed 7
done
interrupted INT probe --device fake:llc=8MiB --model "$scratch/cut-model.json"
said "incomplete: 0 of "
[ ! -e "$scratch/cut-model.json" ] || fault "an interrupted probe stored a model"
interrupted INT selftest --device "$slow" --runs 1000
# Again over a second later: at once, even while the record waits for a reader that does not come.
mkfifo "$scratch/full"
exec 3<>"$scratch/full"
dd if=/dev/zero of="$scratch/full" bs=4096 count=1024 oflag=nonblock 2>"$scratch/err"
"$program" run gemv_q4 --shapes llama-3-8b --device fake:llc=8MiB --budget 60 --json "$scratch/full" \
    >"$scratch/out" 2>"$scratch/err" &
running=$!
sleep 1
kill -INT "$running"
sleep 1.5
kill -INT "$running" || fault "a record that nobody reads is written all the same"
(sleep 20 && kill -KILL "$running") >"$scratch/guard" 2>&1 &
guard=$!
wait "$running"
got=$?
kill "$guard"
[ "$got" = 130 ] || fault "interrupted again after 1.5 s: status $got"
exec 3>&-

# ---- help, and its first example ----
expect 0 -- --help
expect 0 -- --version
mkdir -p "$XDG_DATA_HOME/coldbench/models"
cp "$1/tests/fixtures/models/fake.json" "$XDG_DATA_HOME/coldbench/models/"
verbs=$("$program" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
for verb in run probe model kernels selftest; do
    echo "$verbs" | grep -qx "$verb" || fault "coldbench --help does not list $verb"
done
for verb in $verbs; do
    expect 0 -- "$verb" --help
    example=$(sed -n 's/^  coldbench //p' "$scratch/out" | head -n 1)
    [ -n "$example" ] || fault "$verb --help has no example"
    case $verb in
        kernels) device= ;;
        model) device="--device fake" ;;
        run) device="--device $fake" ;;
        gate) continue ;; # needs two builds: test_gate_cli.sh runs it
        *) device="--device $slow" ;;
    esac
    # shellcheck disable=SC2086 # words of the example
    expect 0 -- $example $device
done
rm -r "$XDG_DATA_HOME"

# ---- the real machine: a model is measured once, as much of it as is needed, and found the next time ----
real() {
    "$program" run gemv_q4 --shape 256x256 --cache warm --submit batched --budget 1 "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" = 0 ] || [ "$got" = 4 ] || fault "run on this machine: status $got"
    said "256x256"
}
# What was asked wrongly is said before a model is measured for it.
for line in "run gemv_q4 --shape 256x256 --budget 0.001" "run alu_chain --cache cold" \
    "compare alu_chain alu_chain --cache cold" "compare stream_read stream_read --shape 24KiB --budget 0.001" \
    "compare stream_read stream_read --shape 24z" "compare stream_read twin_read --shape 24KiB" \
    "gate --base $seeded/gated_base.so --head $seeded/gated_t110.so --shape 4096 --budget 0.001" \
    "gate --base $seeded/gated_base.so --head $seeded/gated_t110.so --shape 4z"; do
    # shellcheck disable=SC2086 # words
    expect 2 -- $line
    grep -q "no model" "$scratch/err" && fault "coldbench $line: a model was measured first"
done
[ ! -e "$XDG_DATA_HOME" ] || fault "a usage error left a model"
real
grep -q "there is no model" "$scratch/err" && grep -q "measuring what is needed" "$scratch/err" ||
    fault "run does not say that it lacks a model"
ls "$XDG_DATA_HOME"/coldbench/models/cpu-*.json >"$scratch/err" 2>&1 || fault "run stored no model"
real
[ "$(grep -c model "$scratch/err")" = 0 ] || fault "run does not find the model that it stored"

exit $failed
