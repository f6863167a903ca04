#!/bin/sh
# test_compare_cli.sh ROOT COLDBENCH: compare as a person meets it: exit status, and what is said where. All on
# the scripted device, so that no figure depends on the machine.
set -u

program=${2:-}
if [ -z "$program" ]; then
    echo "no program to test" >&2
    exit 77
fi
faults=$(dirname "$program")/modules/faults.so
seeded=$(dirname "$program")/tests/modules
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fault() {
    echo "$*"
    sed 's/^/    /' "$scratch/out" "$scratch/err"
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
    "$program" compare "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" = "$want" ] || fault "coldbench compare $*: status $got, not $want"
    while IFS= read -r part; do
        grep -qF -e "$part" "$scratch/err" || fault "compare $*: nothing on standard error says: $part"
    done <"$scratch/parts"
}

said() {
    grep -qF -e "$1" "$scratch/out" || fault "standard output does not say: $1"
}

unsaid() {
    grep -qF -e "$1" "$scratch/out" && fault "standard output says: $1"
}

fake="--device fake:llc=256KiB,noise=0.001 --seed 1"
warm="--shape 24KiB --cache warm $fake"
a=stream_read@work=1000/portable
b=stream_read@work=1050/portable

# ---- what is refused, before anything is measured ----
expect 2 "compare needs 2 to 15 variants" --
expect 2 "compare needs 2 to 15 variants" -- $a $fake
expect 2 "unknown kernel 'stream_reed'" "did you mean 'stream_read'" -- $a stream_reed $warm
expect 2 "unknown option '--margn'" "did you mean '--margin'" -- $a $b --margn 1%
expect 2 "spell work on both sides" -- stream_read stream_read@work=900 $warm
expect 2 "cannot be compared" -- stream_read twin_read $warm
expect 2 "cannot be compared: their dimensions differ" -- gemv_q4 stream_read --shape 4096 $fake
expect 2 "alu_chain streams no operand" "--cache warm" -- alu_chain alu_chain --cache cold $fake
expect 0 "no cold state: warm" -- alu_chain alu_chain $fake
said "[warm]"
expect 2 "the minimum is 0.2 s" -- $a $b $warm --budget 0.1
expect 2 "--alpha" -- $a $b $warm --alpha 2
expect 2 "needs a shape" -- $a $b $fake
expect 3 "'cuda:0'" -- $a $b --shape 24KiB --device cuda:0
expect 5 "cannot write /no/such/folder/x" -- $a $b $warm --json /no/such/folder/x

# ---- decisions and exit statuses ----
expect 0 -- $a $b $warm
said "stream_read@work=1050/portable is slower than stream_read@work=1000/portable: 1.0"
said "x the time [1.0"
said "[warm] batched 24576"
said "A/A 1.0"
said "detectable"
expect 0 -- $b $a $warm
said "stream_read@work=1000/portable is faster than stream_read@work=1050/portable: 0.9"
expect 0 -- $a $a $warm
said "against itself (an A/A run): tie, 1.0000x"
said "(no gate before 10 rounds)"
expect 0 -- $a $b $warm --margin 10%
said "is a tie with stream_read@work=1000/portable (a little slower): 1.0"
expect 4 -- $a $a $warm --device fake:llc=256KiB,process=0.05,process_arm=1
said "(an A/A run): incomparable"
said "two copies of the same code differ here"
expect 4 -- $a $a $warm --device fake:llc=256KiB,noise=0.5 --margin 0.01% --budget 0.2
said "(an A/A run): inconclusive"
said "not settled in 40 rounds, the most there are"
said "a larger --budget will not"
expect 4 -- $a $b $warm --device fake:llc=256KiB,noise=0.5,cache_gbs=0.1 --margin 0.01% --budget 0.3
# How many rounds there is time for depends on the machine, and the estimate's side of 1 on that.
said "$b is inconclusive against $a: "
said "x the time ["
said "rounds that the budget allowed"
said "a larger --budget may tell"
expect 0 -- $a $b $a:streams=2 $warm
said "best: stream_read@work=1000"
said "not shown to be slower"
expect 0 -- $a $b --shape 24KiB --shape 48KiB --cache warm $fake
said "batched 24576"
said "batched 49152"
expect 0 -- $a $b --shape 24KiB $fake
said "[cold]"
expect 0 -- $a $b $warm --submit solo
said "solo"

# ---- sides that are wrong: named, and the others go on ----
expect 1 -- faults/clean faults/past_end faults/clean --kernel "$faults" --shape 96x512 $fake
said "faults/past_end: wrong"
said "bytes changed outside an output"
said "faults/clean against itself (an A/A run): tie"
expect 1 -- faults/clean faults/crashes --kernel "$faults" --shape 96x512 $fake
said "faults/crashes: wrong"
said "died on signal 6"
expect 1 -- $a $b $warm --device fake:llc=256KiB,peak_gbs=30
said "is incomparable with"
expect 1 -- faults/clean faults/closes faults/clean --kernel "$faults" --shape 96x512 $fake
said "faults/closes: wrong"
unsaid "    faults/clean: "
said "faults/clean against itself (an A/A run): tie"
expect 1 -- faults/clean faults/takes_descriptors faults/clean --kernel "$faults" --shape 96x512 $fake --json "$scratch/record"
said "faults/takes_descriptors: wrong"
said "Too many open files"
said "faults/clean against itself (an A/A run): tie"
grep -q "Too many open files" "$scratch/record" || fault "the record does not say what was short"
expect 1 -- faults/clean faults/lets_go faults/clean --kernel "$faults" --shape 96x512 $fake
said "behind"

# ---- what is short is said, and is no interrupt ----
# How many descriptors come before the rounds depends on who has started this: the first limit that gets so far.
for n in 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32; do
    (ulimit -n $n && "$program" compare $a $b $warm --json "$scratch/record") >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ ! -s "$scratch/out" ] || break
done
[ "$got" = 3 ] || fault "$n descriptors: status $got, not 3"
said "Too many open files"
unsaid "interrupted"
grep -q '"why": ".*Too many open files' "$scratch/record" || fault "the record does not say why it is incomplete"

# ---- a kernel of two files, and two files ----
expect 0 -- faults/clean faults/clean --kernel "$faults" --kernel "$seeded/seeded_NONE.so" --shape 96x512 $fake
cp "$faults" "$scratch/mine.so"
expect 2 "rename it" "coldbench gate" -- faults/clean faults/clean --kernel "$faults" --kernel "$scratch/mine.so" --shape 96x512 $fake

# ---- first slots that are slow or fast: printed as such, and no difference ----
for place in 0.05 0 -0.05; do
    expect 0 -- $a $a $warm --device "fake:llc=256KiB,noise=0.001,batched_ns=1,place=$place" -v --json "$scratch/record"
    said ": tie, 1.000"
    awk -v planted="$place" 'function near(x, y) { return x - y < 0.003 && y - x < 0.003 }
        /position effect [+-][0-9.]+ %/ { told = 1; if (!near($3 / 100, planted)) exit 1 } END { if (!told) exit 1 }' \
        "$scratch/out" || fault "place=$place: not printed as the position effect"
    awk -v planted="$place" 'function near(x, y) { return x - y < 0.003 && y - x < 0.003 }
        /"position_effect":/ { kept = 1; if (!near($2 + 0, log(1 + planted))) exit 1 } END { if (!kept) exit 1 }' \
        "$scratch/record" || fault "place=$place: not the record's position_effect"
done

# ---- outputs ----
expect 0 -- $a $b $warm -q
[ ! -s "$scratch/out" ] && [ ! -s "$scratch/err" ] || fault "-q is not quiet"
expect 0 -- $a $b $warm -v
said "position effect"
said "ns between slots"
said "bound      pass"
expect 0 " is slower than " -- $a $b $warm --csv -
awk -F'"' '{ gsub(/,/, ";", $2); gsub(/,/, ";", $4); n = split($1 $2 $3 $4 $5, field, ","); if (NR == 1) columns = n
            if (n != columns || NR > 2) exit 1 } END { if (NR != 2) exit 1 }' "$scratch/out" ||
    fault "the CSV has not as many columns in its row as in its head"
expect 0 " is slower than " -- $a $b $warm --json -
for key in schema kind complete seed started startup_s measure_s tool host device checks results a b shape cache submit \
    threads ratio lo mid hi coverage aa_ratio position_effect alpha margin blocks rounds thetas theta_aa2 theta_ab \
    theta_a2b samples_ns order detectable bit_identical decision; do
    said "\"$key\":"
done
unsaid '"best":'
awk '/"aa_ratio":/ { seen = on = 1 } on && /null/ { bad = 1 } /}/ { on = 0 } END { exit bad || !seen }' "$scratch/out" ||
    fault "the A/A ratio is not four numbers"
# Six spaces: of the result; ten: of a round; two: of the command. All rounds together are the whole.
awk '/^  "measure_s":/ { all = $2 + 0 } /^      "measure_s":/ { result = $2 + 0 }
    /^          "measure_s":/ { rounds++; sum += $2 } /^          "startup_s":/ { starts++ }
    END { d = sum - all; exit !(rounds >= 6 && starts == rounds && all > 0 && result == all && d * d < 1e-18) }' \
    "$scratch/out" || fault "measure_s of the rounds does not add up to that of the command"
cp "$scratch/out" "$scratch/first"
expect 0 -- $a $b $warm --json -
# Everything but the clocks of this machine is the same with the same seed.
for key in samples_ns thetas; do
    for file in first out; do
        awk -v key="\"$key\":" 'index($0, key) { on = 1 } on { print } on && /^      \]/ { on = 0 }' \
            "$scratch/$file" >"$scratch/$file.$key"
    done
    [ -s "$scratch/out.$key" ] && cmp -s "$scratch/first.$key" "$scratch/out.$key" ||
        fault "$key differ between two runs with one seed"
done
expect 0 -- $a $b $a:streams=2 $warm --json -
said '"best": "stream_read@work=1000'
said '"tie_set": ['

# ---- Ctrl-C: what was measured is written, and marked ----
"$program" compare faults/clean faults/hangs --kernel "$faults" --shape 96x512 $fake --json "$scratch/record" \
    >"$scratch/out" 2>"$scratch/err" &
child=$!
sleep 1
kill -INT $child
wait $child
got=$?
[ "$got" = 130 ] || fault "interrupted: status $got, not 130"
grep -q '"complete": false' "$scratch/record" || fault "the record of an interrupted run says that it is complete"
said "incomplete: interrupted"

# ---- the example of the help ----
"$program" compare --help >"$scratch/out" 2>&1
example=$(sed -n 's/^  coldbench \(compare .*\)/\1/p' "$scratch/out" | head -n 1)
[ -n "$example" ] || fault "the help has no example"
# shellcheck disable=SC2086 # one word an argument
"$program" $example --device fake --seed 1 >"$scratch/out" 2>"$scratch/err" || fault "the example fails: $example"
exit $failed
