#!/bin/sh
# test_gate_cli.sh ROOT COLDBENCH: two builds of a kernel with a planted difference, on the scripted device: what
# is said, where, and with which exit status. No figure depends on the machine.
set -u

abi=$(sed -n 's/^#define CB_KERNEL_ABI \([0-9]*\).*/\1/p' "$1/include/coldbench/kernel.h")
program=${2:-}
if [ -z "$program" ]; then
    echo "no program to test" >&2
    exit 77
fi
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")
modules=$(dirname "$program")/tests/modules
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
export XDG_DATA_HOME="$scratch/data" TMPDIR="$scratch/tmp"
mkdir "$TMPDIR"

fault() {
    echo "$*"
    sed 's/^/    /' "$scratch/out" "$scratch/err"
    failed=1
}

# gate STATUS PART... -- ARGUMENTS: coldbench gate ends with STATUS; each PART is on one of its outputs.
gate() {
    want=$1
    shift
    : >"$scratch/parts"
    while [ "$1" != -- ]; do
        printf '%s\n' "$1" >>"$scratch/parts"
        shift
    done
    shift
    "$program" gate "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" = "$want" ] || fault "gate $*: status $got, not $want"
    while IFS= read -r part; do
        grep -qF -e "$part" "$scratch/out" "$scratch/err" || fault "gate $*: nothing says: $part"
    done <"$scratch/parts"
}

holds() {
    grep -qF -e "$2" "$1" || fault "$(basename "$1") does not say: $2"
}

# folder NAME BUILD...: a folder of modules without an index.
folder() {
    mkdir -p "$scratch/$1"
    to=$scratch/$1
    shift
    for build in "$@"; do cp "$modules/gated_$build.so" "$to/"; done
}

# index FOLDER ABI SOURCE: an index of gated_base.so there.
index() {
    printf '{"schema": "coldbench-modules/1", "abi": %s, "modules": [{"name": "gated", "file": "gated_base.so",
        "source_id": "%s"}]}\n' "$2" "$3" >"$scratch/$1/modules.json"
}

device="--device fake:llc=16KiB,batched_ns=1,solo_ns=1 --seed 7"
quick="--shape 4096 $device"
base=$modules/gated_base.so

# ---- what is asked ----
gate 2 "gate needs --base and --head" --
gate 2 "gate needs --base and --head" -- --base "$base"
gate 2 "gate takes no argument, 'gated'" -- gated --base "$base" --head "$base"
gate 2 "--head: /no/such: No such file" -- --base "$base" --head /no/such
gate 2 "--head: $scratch has no modules.json" -- --base "$base" --head "$scratch"
echo text >"$scratch/text"
gate 2 "is no folder, no kernel module (NAME.so) and no program" -- --base "$scratch/text" --head "$base"
cp "$scratch/text" "$scratch/text.so"
gate 2 "--base: " "text.so" -- --base "$scratch/text.so" --head "$base"
gate 2 "neither --base nor --head has a kernel 'gatde'" -- --base "$base" --head "$base" --kernel gatde
gate 2 "unknown suite 'defualt'" "did you mean 'default'" -- --base "$base" --head "$base" --suite defualt
gate 2 "give --shape, and --kernel" "which has no case of these modules" -- --base "$base" --head "$modules/gated_t110.so" $device
gate 2 "only one can go to standard output" -- --base "$base" --head "$base" --json - --markdown -
gate 5 "cannot write /no/such/x: No such file" -- --base "$base" --head "$base" $quick --markdown /no/such/x
gate 2 "--budget 0.01 is too small for 1 case; the minimum is" -- \
    --base "$base" --head "$modules/gated_t110.so" $quick --budget 0.01

# ---- the same build, of which all is checked that is checked of others ----
cp "$base" "$scratch/copy.so"
for head in "$scratch/copy.so" "$modules/gated_rebuilt.so"; do
    gate 2 "n of gated: 'abc' is not an integer" -- --base "$base" --head "$head" $device --shape abc
    gate 2 "'0' is out of range" -- --base "$base" --head "$head" $device --shape 4096 --shape 0
    gate 2 "shape '4x4x4' of gated must be n" -- --base "$base" --head "$head" $device --shape 4x4x4
    gate 2 "unknown parameter 'act'" -- --base "$base" --head "$head" $quick --kernel gated@act=bogus:chunk=3
    gate 2 "unknown tunable 'chunk'" -- --base "$base" --head "$head" $quick --kernel gated:chunk=3
    gate 2 "gated needs a shape: --shape n" -- --base "$base" --head "$head" $device --kernel gated
    gate 2 "--threads 9999" -- --base "$base" --head "$head" --shape 4096 --threads 9999
    gate 3 "" -- --base "$base" --head "$head" --shape 4096 --device opencl:0
done
gate 0 "nothing to compare: 2 cases" -- --base "$base" --head "$scratch/copy.so" $device --shape 4096 \
    --shape n=4096 --shape 4KiB --shape 2048 --kernel gated --kernel gated/plain --json-benchmark "$scratch/b.json"
holds "$scratch/b.json" '"gated/4096/cold: identical"'
grep -q '"num_cpus": [1-9]' "$scratch/b.json" || fault "num_cpus is not the device's"
gate 1 "over 1 comparison;" -- --base "$base" --head "$modules/gated_t110.so" $quick --shape n=4096
gate 0 "nothing to compare" "identical" -- --base "$base" --head "$scratch/copy.so" $quick

# ---- a planted difference ----
gate 0 "tie            gated 4096 [cold]" "pass: 1 tie" -- --base "$base" --head "$modules/gated_rebuilt.so" $quick
gate 1 "regression     gated 4096 [cold]   1.09" "regression: 1 regression" -- \
    --base "$base" --head "$modules/gated_t110.so" $quick --json "$scratch/g.json" --csv "$scratch/g.csv" \
    --markdown "$scratch/g.md" --json-benchmark "$scratch/b.json"
holds "$scratch/g.json" '"kind": "gate"'
holds "$scratch/g.json" '"verdict": "regression"'
holds "$scratch/g.json" '"outcome": "regression"'
holds "$scratch/g.json" '"decision": "slower"'
holds "$scratch/g.json" '"complete": true'
holds "$scratch/g.csv" '"gated","4096",cold,'
holds "$scratch/g.csv" ',regression'
# shellcheck disable=SC2016 # of Markdown
holds "$scratch/g.md" '| **regression** | `gated` | 4096 | cold | 1.09'
holds "$scratch/b.json" '"name": "gated/4096/cold/base"'
holds "$scratch/b.json" '"name": "gated/4096/cold/head"'
holds "$scratch/b.json" '"time_unit": "ns"'
gate 0 "faster         gated 4096 [warm]   0.9" "pass: 1 faster" -- \
    --base "$modules/gated_t110.so" --head "$base" $quick --cache warm
gate 0 "tie " -- --base "$base" --head "$modules/gated_t101.so" $quick
gate 1 "regression " -- --base "$base" --head "$modules/gated_t101.so" $quick --margin 0.3%

# ---- two cases share alpha ----
gate 1 "2 regression" "over 2 comparisons" -- --base "$base" --head "$modules/gated_t110.so" $quick --shape 2048 \
    --markdown -
holds "$scratch/err" "regression     gated 2048"
holds "$scratch/out" "| **regression** |"

# ---- sides that are not right ----
gate 1 "wrong          gated" "head is wrong: bound" -- --base "$base" --head "$modules/gated_wrong.so" $quick
gate 1 "wrong          gated" "head is wrong: worker" -- \
    --base "$base" --head "$modules/gated_crashes.so" $quick
# A sanitizer makes an exit status of the signal.
grep -qE 'signal 11|exited with status 1' "$scratch/out" "$scratch/err" || fault "a crash does not say how"
gate 4 "undecided      gated" "base is wrong: bound" -- --base "$modules/gated_wrong.so" --head "$base" $quick
gate 4 "not comparable gated" "their operands differ" -- --base "$base" --head "$modules/gated_type.so" $quick
gate 4 "undecided" "not settled in 40 rounds, the most there are" "a larger --budget will not" -- \
    --base "$base" --head "$modules/gated_rebuilt.so" $quick --margin 0.001%
gate 4 "undecided      gated 4096 [cold]" "    a launch takes 0.1 s: the least budget is about" "larger --budget may tell" -- \
    --base "$base" --head "$modules/gated_rebuilt.so" --shape 4096 --budget 3 --seed 7 \
    --device fake:llc=16KiB,batched_ns=100000000,solo_ns=100000000 --markdown "$scratch/g.md"
holds "$scratch/g.md" "a launch takes 0.1 s"
# Both sides are wrong: both are said, the head first, and no chance of a false alarm beside them.
gate 1 "    head is wrong: bound" "    base is wrong: bound" -- --base "$modules/gated_wrong.so" \
    --head "$modules/gated_wrong2.so" $quick --markdown "$scratch/g.md"
holds "$scratch/g.md" "<br>base is wrong: bound"
awk '/head is wrong/ { head = NR } /base is wrong/ { exit !(head && head < NR) }' "$scratch/out" ||
    fault "the base is named before the head"
grep -q "false alarm" "$scratch/out" "$scratch/g.md" && fault "a chance of false alarms where nothing was compared"
# What does not fit into memory costs that case alone.
gate 4 "undecided      gated 4096" "gated needs" "tie            gated 16 " "over 1 comparison" -- --base "$base" \
    --head "$modules/gated_rebuilt.so" --shape 4096 --shape 16 --cache warm --device fake:llc=16KiB,memory=1500KiB \
    --seed 7
gate 4 "gated is too small here to be cold: a launch touches 8 bytes" "28 KiB with" "--cache warm" -- --base "$base" \
    --head "$modules/gated_rebuilt.so" --shape 1 --device fake:llc=16KiB,memory=1MiB

# ---- Ctrl-C: what was measured is written, and marked ----
many=""
for rows in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do many="$many --shape $((rows * 256))"; done
: >"$scratch/err"
# shellcheck disable=SC2086 # words
"$program" gate --base "$base" --head "$modules/gated_rebuilt.so" $many $device --margin 0.001% \
    --json "$scratch/g.json" --csv "$scratch/g.csv" --markdown "$scratch/g.md" >"$scratch/out" 2>"$scratch/err" &
child=$!
tries=0
until grep -q ': round' "$scratch/err" || [ $tries -ge 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -INT $child
wait $child
got=$?
[ "$got" = 130 ] || fault "interrupted: status $got, not 130"
holds "$scratch/err" "coldbench: interrupted"
grep -q '^  "complete": false' "$scratch/g.json" || fault "the record of an interrupted gate says that it is complete"
grep -q '"theta_ab": ' "$scratch/g.json" || fault "the record of an interrupted gate has no round"
for table in "$scratch/out" "$scratch/g.md"; do
    holds "$table" "; incomplete: interrupted"
    holds "$table" "interrupted after"
    holds "$table" "not measured"
done
holds "$scratch/g.csv" '"gated","5120",cold,0,'

# ---- another ABI version ----
gate 2 "--head: " "has ABI version" "rebuild it" -- --base "$base" --head "$modules/seeded_ABI.so" $quick
folder abi base
index abi 99 x
gate 2 "--head: $scratch/abi/modules.json" "have ABI version 99" -- --base "$base" --head "$scratch/abi" $quick
cat >"$scratch/other" <<EOF
#!/bin/sh
cp "$scratch/abi/"* "\$3/"
EOF
chmod +x "$scratch/other"
gate 2 "have ABI version 99" -- --base "$base" --head "$scratch/other" $quick
printf '#!/bin/sh\necho "unknown option" >&2\nexit 2\n' >"$scratch/other"
gate 2 "kernels --export failed: exited with status 2" -- --base "$base" --head "$scratch/other" $quick

# ---- kernels on one side ----
folder both base other
folder one rebuilt
gate 0 "only in the base, not compared: other" "pass: 1 tie" -- --base "$scratch/both" --head "$scratch/one" $quick
gate 0 "only in the head, not compared: other" -- --base "$scratch/one" --head "$scratch/both" $quick
gate 2 "nothing can be compared: other is on one side only" -- \
    --base "$scratch/both" --head "$scratch/one" --kernel other $quick

# ---- a shape that one side refuses ----
gate 4 "not comparable gated 4097" 'the head refuses it: gated: `n` | 4096 at most' "tie " -- \
    --base "$base" --head "$modules/gated_picky.so" $quick --shape 4097
gate 4 "the base refuses it" -- --base "$modules/gated_picky.so" --head "$base" $device --shape 4097 \
    --markdown "$scratch/g.md"
holds "$scratch/g.md" '\`n\` \| 4096 at most'

# ---- what streams nothing has no cold state ----
mkdir "$scratch/chain"
"$program" kernels --export "$scratch/chain" || fault "kernels --export failed"
gate 0 "identical      alu_chain [warm]" -- --base "$scratch/chain" --head "$scratch/chain" $device --kernel alu_chain
gate 2 "alu_chain streams no operand" -- --base "$scratch/chain" --head "$scratch/chain" $device \
    --kernel alu_chain --cache cold

# ---- stale builds ----
folder old base
folder new base
index old "$abi" aaaa
index new "$abi" bbbb
gate 2 "stale build: module gated_base" "(aaaa and bbbb)" "rebuild" -- \
    --base "$scratch/old" --head "$scratch/new" $quick
index new "$abi" aaaa
gate 0 "nothing to compare" -- --base "$scratch/old" --head "$scratch/new" $quick
mkdir -p "$scratch/tree/src" "$scratch/tree/build"
cp "$program" "$scratch/tree/build/coldbench"
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$scratch/tree" >"$scratch/tree/build/CMakeCache.txt"
touch -d '1 hour' "$scratch/tree/src/one.c"
for build in "$scratch/tree/build" "$scratch/tree/build/coldbench"; do
    gate 2 "is a stale build, older than its source $scratch/tree/src/one.c" \
        "cmake --build $scratch/tree/build" -- --base "$base" --head "$build"
done
touch -d '2 hours' "$scratch/tree/build/coldbench"
# Modules of a build folder are held against the list of sources that it left.
mkdir "$scratch/tree/build/modules" "$scratch/tree/build/generated"
cp "$base" "$scratch/tree/build/modules/"
for build in "$scratch/tree/build/modules" "$scratch/tree/build/modules/gated_base.so"; do
    gate 0 "nothing to compare" -- --base "$base" --head "$build" $quick
done
printf 'src/gone.c\nsrc/one.c\n' >"$scratch/tree/build/generated/module_gated_base_source.txt"
for build in "$scratch/tree/build/modules" "$scratch/tree/build/modules/gated_base.so"; do
    gate 2 "gated_base.so is a stale build, older than its source $scratch/tree/src/one.c" \
        "cmake --build $scratch/tree/build" -- --base "$base" --head "$build" $quick
done
touch -d '2 hours' "$scratch/tree/build/modules/gated_base.so"
gate 0 "nothing to compare" -- --base "$base" --head "$scratch/tree/build/modules" $quick
built=$(dirname "$program")
[ ! -e "$built/modules/alu_chain.so" ] || grep -qx src/kernel/alu_chain/kernel.c \
    "$built/generated/module_alu_chain_source.txt" || fault "the build leaves no list of a module's sources"

# ---- programs and what they export ----
"$program" kernels --export "$scratch/export" >"$scratch/out" 2>"$scratch/err" || fault "kernels --export failed"
[ ! -s "$scratch/out" ] || fault "kernels --export prints"
holds "$scratch/export/modules.json" '"schema": "coldbench-modules/1"'
grep -qE '"source_id": "[0-9a-f]{64}"' "$scratch/export/modules.json" || fault "a module without a source id"
gate 0 "identical      gemv_q4 14336x4096 [cold]" "identical      stream_read 4MiB [warm]" \
    "nothing to compare: 6 cases of identical builds" -- --base "$scratch/export" --head "$scratch/tree/build"
# No space: what could not be written whole is not there, and it is no fault of the request. A limit on the size of
# a file stands in for a full disk.
limited() { (trap '' XFSZ && ulimit -f 8 && exec "$@") >"$scratch/out" 2>"$scratch/err"; }
mkdir "$scratch/empty"
for into in fresh empty; do
    limited "$program" kernels --export "$scratch/$into"
    [ $? = 5 ] || fault "kernels --export on a full disk: not status 5"
    holds "$scratch/err" "writing $scratch/$into/"
done
[ ! -e "$scratch/fresh" ] || fault "left of an export that failed: $(ls -l "$scratch/fresh")"
[ -z "$(ls "$scratch/empty")" ] || fault "left of an export that failed: $(ls -l "$scratch/empty")"
cp "$program" "$scratch/untouched"
# shellcheck disable=SC2086 # words
limited "$program" gate --base "$scratch/untouched" --head "$scratch/untouched" $quick
got=$?
[ $got = 5 ] || fault "gate on a full TMPDIR: status $got, not 5"
holds "$scratch/err" "kernels --export could not write to $TMPDIR/"
"$program" kernels --export /no/such/folder >"$scratch/out" 2>"$scratch/err"
[ $? = 5 ] || fault "kernels --export into no folder: not status 5"

# ---- the example of the help ----
"$program" gate --help >"$scratch/out" 2>"$scratch/err" || fault "gate --help fails"
example=$(sed -n 's/^  coldbench \(gate .*\)/\1/p' "$scratch/out" | head -n 1)
[ -n "$example" ] || fault "the help has no example"
rm -r "$scratch/old" "$scratch/new"
cp -r "$scratch/export" "$scratch/old"
cp -r "$scratch/export" "$scratch/new"
# shellcheck disable=SC2086 # words of the example
(cd "$scratch" && "$program" $example) >"$scratch/out" 2>"$scratch/err" || fault "the example fails: $example"
holds "$scratch/summary.md" "### coldbench gate: nothing to compare"

[ -z "$(ls "$TMPDIR")" ] || fault "left behind in TMPDIR: $(ls "$TMPDIR")"
exit $failed
