#!/bin/sh
# test_skipped.sh ROOT: scripts/skipped.sh sees skipped cmocka cases and skipped programs in ctest's log,
# and tells those that must run from those that tests/may_skip.txt names.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/scripts" "$scratch/tests" "$scratch/build/Testing/Temporary"
cp "$1/scripts/skipped.sh" "$scratch/scripts"
printf '# reason\ntest_one needs_avx512 reason\ntest_two - reason\n' >"$scratch/tests/may_skip.txt"
failed=0

# expect STATUS OUTPUT LOG PRINTED: what skipped.sh says of ctest's log and output.
expect() {
    printf '%b' "$3" >"$scratch/build/Testing/Temporary/LastTest.log"
    printf '%b' "$4" >"$scratch/printed"
    output=$(sh "$scratch/scripts/skipped.sh" "$scratch/build" "$scratch/printed")
    status=$?
    if [ $status -ne "$1" ] || [ "$output" != "$2" ]; then
        printf 'status %s, output "%s", expected %s, "%s"\n' $status "$output" "$1" "$2"
        failed=1
    fi
}

one='1/2 Testing: test_one\n1/2 Test: test_one\n'
two='2/2 Testing: test_two\n2/2 Test: test_two\n'
# skips CASE: what cmocka prints of a case that is skipped, there and in its summary.
skips() {
    printf '%s' "[ RUN      ] $1\n[  SKIPPED ] $1\n[==========] 1 test(s) run.\n" \
        "[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] $1\n\n 1 SKIPPED TEST(S)\nTest Passed.\n"
}

passed='1/2 Test #1: test_one .....   Passed    0.00 sec\n'
expect 0 '' "${one}[       OK ] adds_up\nTest Passed.\n" "$passed"
expect 0 'test_one needs_avx512' "$one$(skips needs_avx512)" "$passed"
expect 1 'test_one adds_up (must run)' "$one$(skips adds_up)" "$passed"
expect 1 'test_two needs_avx512 (must run)' "$two$(skips needs_avx512)" "$passed"
# The log says "Test Passed." of a program that exits with the status for skipped.
expect 0 'test_two -' "${two}Test Passed.\n" '2/2 Test  #2: test_two .....***Skipped   0.00 sec\n'
expect 1 'test_one - (must run)' "${one}Test Passed.\n" '1/2 Test #11: test_one .....***Skipped   0.00 sec\n'
exit $failed
