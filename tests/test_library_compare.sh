#!/bin/sh
# test_library_compare.sh ROOT COLDBENCH: programs that compare their own functions through
# include/coldbench/compare.h, with cb_worker_entry and without: the example, and one that misbehaves.
set -u

program=${2:-}
if [ -z "$program" ]; then
    echo "no program to test" >&2
    exit 77
fi
built=$(dirname "$program")/tests
for part in example_compare example_compare_plain library_program; do
    [ -x "$built/$part" ] || { echo "$built/$part is not built"; exit 1; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
export XDG_DATA_HOME="$scratch/data"

fault() {
    echo "$*"
    sed 's/^/    /' "$scratch/out"
    failed=1
}

# try STATUS PROGRAM ARGUMENTS: what it wrote is looked at with said and unsaid.
try() {
    want=$1
    shift
    words=$*
    echo input | timeout 120 "$@" >"$scratch/out" 2>&1
    got=$?
    [ "$got" = "$want" ] || fault "$words: status $got, not $want"
}

said() {
    for part in "$@"; do
        grep -qF -e "$part" "$scratch/out" || fault "$words: nothing says: $part"
    done
}

unsaid() {
    for part in "$@"; do
        grep -qF -e "$part" "$scratch/out" && fault "$words says: $part"
    done
}

count() {
    n=$(grep -cF -e "$2" "$scratch/out")
    [ "$n" = "$1" ] || fault "$words: $n times '$2', not $1"
}

decided() {
    grep -qxE 'decision (slower|faster|tie|unstable|incomparable|inconclusive)' "$scratch/out" ||
        fault "$words: no decision"
}

# ---- the example, which calls cb_worker_entry, and its twin, which does not ----
for example in example_compare:"holds for this program's link layout" \
    example_compare_plain:"holds for this process image only"; do
    try 0 "$built/${example%%:*}"
    said "'four chains' against 'one chain'" "${example#*:}" "outputs bit-identical" "rounds"
    [ "$(wc -l <"$scratch/out")" = 1 ] || fault "the example wrote more than a line"
done

for how in entry plain; do
    [ $how = entry ] && scope="holds for this program's link layout" || scope="holds for this process image only"

    # ---- answers ----
    try 0 "$built/library_program" $how same
    said "status CB_OK" "scope $scope" "aa 1" "bits 1" "measured" "(the same code)"
    decided
    count 1 "main was here"
    try 0 "$built/library_program" $how alike
    said "status CB_OK" "aa 0" "bits 1" "measured"
    decided
    try 0 "$built/library_program" $how slower
    said "status CB_OK" "decision slower" "scope $scope" "measured" "'b' against 'a': slower, ratio" "$scope"
    unsaid "a figure is missing"
    try 0 "$built/library_program" $how bits
    said "status CB_OK" "bits 0" "measured"
    try 0 "$built/library_program" $how "not looked at"
    said "status CB_OK" "aa 1" "bits 0" "measured"
    try 0 "$built/library_program" $how talk
    said "status CB_OK" "measured"
    unsaid "a function talks"

    # ---- a side that misbehaves costs the decision and nothing else ----
    for fault in short:"3 of 64 bytes of the output never written, first at 61" \
        wrong:"the check of its output gave 41" crash:"'b': " hang:"'b': the worker said nothing for" \
        leave:"'b': exited with status 0"; do
        try 0 "$built/library_program" $how "${fault%%:*}"
        said "status CB_OK" "decision incomparable" "note 'b': " "${fault#*:}" "$scope"
        unsaid "note 'a': " "; 'a': "
        count 1 "main was here"
    done

    # ---- what is not valid ----
    try 0 "$built/library_program" $how null
    said "status CB_USAGE" "message function b of the comparison is NULL"
    try 0 "$built/library_program" $how "small budget"
    said "status CB_USAGE" "message budget_s 0.01 is too small; the minimum is"
    try 0 "$built/library_program" $how sleep
    said "status CB_USAGE" "message budget_s 10 is too small for calls of 0.1" "the minimum is 4"
    try 0 "$built/library_program" $how alpha
    said "status CB_USAGE" "message alpha 2 is not in"
    try 0 "$built/library_program" $how "half output"
    said "status CB_USAGE" "both or neither"
    try 0 "$built/library_program" $how stop
    said "status CB_INTERRUPTED" "decision inconclusive"

    # ---- more than one comparison: each round takes the way that the program took ----
    try 0 "$built/library_program" $how two
    count 2 "status CB_OK"
    said "decision slower" "decision faster" "'b' against 'second': faster"
    count 1 "main was here"
    try 0 "$built/library_program" $how words third
    count 2 "decision slower"
    said "'b' against 'third': slower"
done

# ---- a main that does not come there again ----
try 0 "$built/library_program" entry "reads input"
said "status CB_USAGE" "did not come to the comparison of 'a' with 'b': it exited with status 0"
try 0 "$built/library_program" entry "other names"
said "status CB_USAGE" "it came to 'c' and 'b' instead"
try 0 "$built/library_program" entry "slow main"
said "status CB_USAGE" "did not come to the comparison of 'a' with 'b': it gave no answer in time"
try 0 "$built/library_program" forgets slower
said "status CB_USAGE" "did not come to the comparison of 'a' with 'b': it exited with status 3"
try 0 "$built/library_program" plain "reads input"
said "decision slower"

# ---- kernels ----
try 0 "$built/library_program" entry kernels
said "status CB_OK" "decision slower" "scope holds for the code, whatever its layout" "measured"
try 0 "$built/library_program" entry "kernels then"
count 2 "decision slower"
said "alu_chain@work=400" "'b' against 'a'"
try 0 "$built/library_program" entry "no such kernel"
said "status CB_USAGE" "did you mean 'alu_chain'"
try 0 "$built/library_program" plain kernels
said "status CB_USAGE" "main must begin with cb_worker_entry"

# ---- something else's variable is nothing to a program ----
COLDBENCH_ROUND=1 try 0 "$built/library_program" entry slower
said "decision slower"
COLDBENCH_ROUND=7 try 0 "$built/library_program" entry slower 7</dev/null
said "decision slower"

exit $failed
